package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Records are allocated many at a time, because one allocation per record would dominate the generator's CPU time.
const slabRecords = 1024

// producerOptions asks for acks=all (franz-go's default, with idempotence) or acks=1, and compression with LZ4 or none.
func producerOptions(s settings, linger time.Duration) []kgo.Opt {
	acks := []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}
	if s.acks == "1" {
		acks = []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}
	}
	codec := kgo.NoCompression()
	if s.codec == "lz4" {
		codec = kgo.Lz4Compression()
	}
	return append(acks,
		kgo.DefaultProduceTopic(s.topic),
		kgo.ProducerBatchCompression(codec),
		kgo.ProducerBatchMaxBytes(int32(s.batchBytes)),
		kgo.ProducerLinger(linger),
		kgo.MaxBufferedRecords(500_000),
	)
}

// randomValues returns one random value, or for compression as many texts of random words as a slab has records, which
// LZ4 reduces to about two thirds.
func randomValues(s settings) [][]byte {
	if s.codec == "none" {
		value := make([]byte, s.sizeBytes)
		_, _ = rand.Read(value) // never fails
		return [][]byte{value}
	}
	words := make([]string, 2000)
	for i := range words {
		words[i] = strings.ToLower(rand.Text()[:3+mathrand.IntN(7)])
	}
	values := make([][]byte, slabRecords)
	for i := range values {
		var text []byte
		for len(text) < s.sizeBytes {
			text = append(append(text, words[mathrand.IntN(len(words))]...), ' ')
		}
		values[i] = text[:s.sizeBytes]
	}
	return values
}

func produce(ctx context.Context, s settings) (report, error) {
	client, err := newClient(ctx, s, producerOptions(s, s.linger)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	values := randomValues(s)
	keys := make([][]byte, s.keys)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%012d", i)
	}
	var refused atomic.Int64
	var reason atomic.Value
	acknowledged := func(_ *kgo.Record, err error) {
		if err != nil {
			refused.Add(1)
			reason.CompareAndSwap(nil, err.Error())
		}
	}
	began := time.Now()
	for left := s.records; left > 0; {
		slab := make([]kgo.Record, min(left, slabRecords))
		for i := range slab {
			slab[i].Value = values[i%len(values)]
			if len(keys) > 0 {
				slab[i].Key = keys[mathrand.IntN(len(keys))]
			}
			client.Produce(ctx, &slab[i], acknowledged)
		}
		left -= len(slab)
	}
	if err := client.Flush(ctx); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if refused.Load() > 0 {
		return nil, fmt.Errorf("%d of %d records were rejected, the first with: %v", refused.Load(), s.records, reason.Load())
	}
	if ctx.Err() != nil {
		return nil, errors.New("the deadline passed before every record was acknowledged")
	}
	return throughput(s.records, int64(s.records)*int64(s.sizeBytes), took), nil
}
