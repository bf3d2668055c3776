package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	settleTime   = time.Second      // connections open and caches fill in this time; its records are not counted
	arrivalLimit = 10 * time.Second // for the arrival of the last record after it was sent
)

// latency measures the time from the call that sends a record until the consumer has it, at a fixed rate, without linger.
func latency(ctx context.Context, s settings) (report, error) {
	options := append(producerOptions(s, 0), kgo.ConsumeTopics(s.topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	client, err := newClient(ctx, s, options...)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	total := s.rate * (s.seconds + int(settleTime/time.Second))
	arrived := make(chan []time.Duration, 1)
	receiving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { arrived <- receive(receiving, client, began, total) }()
	if err := sendAtRate(ctx, client, s, began, total); err != nil {
		return nil, err
	}
	sending := time.Since(began)
	var delays []time.Duration
	select {
	case delays = <-arrived:
	case <-time.After(arrivalLimit):
		stop()
		delays = <-arrived
	}
	go client.Close()
	expected := s.rate * s.seconds
	if len(delays) < expected*99/100 {
		return nil, fmt.Errorf("only %d of %d records arrived", len(delays), expected)
	}
	return summary(s, delays, total, sending), nil
}

func sendAtRate(ctx context.Context, client *kgo.Client, s settings, began time.Time, total int) error {
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			failed = err // callbacks run one at a time
		}
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for sent := 0; sent < total; {
		<-ticker.C
		due := min(total, int(time.Since(began).Seconds()*float64(s.rate)))
		for ; sent < due; sent++ {
			value := make([]byte, max(8, s.sizeBytes))
			binary.BigEndian.PutUint64(value, uint64(time.Since(began)))
			client.Produce(ctx, &kgo.Record{Value: value}, done)
		}
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	return failed
}

func receive(ctx context.Context, client *kgo.Client, began time.Time, total int) []time.Duration {
	delays := make([]time.Duration, 0, total)
	for received := 0; received < total && ctx.Err() == nil; {
		fetches := client.PollFetches(ctx)
		now := time.Since(began)
		fetches.EachRecord(func(record *kgo.Record) {
			received++
			if sent := time.Duration(binary.BigEndian.Uint64(record.Value)); sent >= settleTime {
				delays = append(delays, now-sent)
			}
		})
	}
	return delays
}

func summary(s settings, delays []time.Duration, sent int, sending time.Duration) report {
	outcome := throughput(sent, int64(sent)*int64(s.sizeBytes), sending)
	outcome["counted"] = len(delays)
	maps.Copy(outcome, percentiles(delays))
	return outcome
}

// percentiles sorts the delays.
func percentiles(delays []time.Duration) report {
	outcome := report{}
	if len(delays) == 0 {
		return outcome
	}
	slices.Sort(delays)
	for name, share := range map[string]float64{"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999, "max_ms": 1} {
		index := min(len(delays)-1, int(share*float64(len(delays))))
		outcome[name] = float64(delays[index]) / float64(time.Millisecond)
	}
	return outcome
}
