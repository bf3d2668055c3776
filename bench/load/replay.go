package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	metadataVersion = 8
	produceVersion  = 7 // the last one before flexible versions
	replayedAtOnce  = 16
	replaysInFlight = 2
	batchHeadBytes  = 61
	crcFrom         = 21 // the checksum covers the batch from its attributes on
)

// replay writes encoded Produce requests, each with one batch for one partition, over a connection for each partition.
// The requests of a connection are the same bytes, sent sixteen at a time, and of a response only the error code is
// read: the generator takes a small part of the CPU time that the broker takes.
func replay(ctx context.Context, s settings) (report, error) {
	leaders, err := leadersOf(ctx, s)
	if err != nil {
		return nil, err
	}
	batch, inBatch := encodedBatch(s)
	rounds := max(replaysInFlight, s.records/(inBatch*replayedAtOnce*len(leaders)))
	connections := make([]net.Conn, len(leaders))
	for index, address := range leaders {
		var dialer net.Dialer
		if connections[index], err = dialer.DialContext(ctx, "tcp", address); err != nil {
			return nil, err
		}
		defer connections[index].Close()
	}
	failures := make([]error, len(leaders))
	began := time.Now()
	var group sync.WaitGroup
	for index, connection := range connections {
		group.Go(func() { failures[index] = replayTo(connection, produceRequest(s.topic, int32(index), batch), rounds) })
	}
	group.Wait()
	took := time.Since(began)
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	records := rounds * replayedAtOnce * inBatch * len(leaders)
	return throughput(records, int64(records)*int64(s.sizeBytes), took), nil
}

// leadersOf returns the address of the leader of each partition.
func leadersOf(ctx context.Context, s settings) ([]string, error) {
	w, err := dial(ctx, strings.Split(s.brokers, ",")[0])
	if err != nil {
		return nil, err
	}
	defer w.connection.Close()
	request := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(s.topic)
	request.Topics = append(request.Topics, topic)
	answer, err := w.ask(request, metadataVersion)
	if err != nil {
		return nil, err
	}
	response := answer.(*kmsg.MetadataResponse)
	addresses := map[int32]string{}
	for _, broker := range response.Brokers {
		addresses[broker.NodeID] = fmt.Sprintf("%s:%d", broker.Host, broker.Port)
	}
	if err := kerr.ErrorForCode(response.Topics[0].ErrorCode); err != nil {
		return nil, err
	}
	leaders := make([]string, len(response.Topics[0].Partitions))
	for _, partition := range response.Topics[0].Partitions {
		leaders[partition.Partition] = addresses[partition.Leader]
	}
	return leaders, nil
}

// encodedBatch returns a batch of about s.batchBytes of one random value without keys, and its number of records.
func encodedBatch(s settings) ([]byte, int) {
	value := make([]byte, s.sizeBytes)
	_, _ = rand.Read(value) // never fails
	var records []byte
	count := 0
	for ; count == 0 || batchHeadBytes+len(records)+s.sizeBytes < s.batchBytes; count++ {
		body := binary.AppendVarint([]byte{0, 0}, int64(count)) // attributes, time and offset after those of the batch
		body = binary.AppendVarint(body, -1)                    // no key
		body = append(binary.AppendVarint(body, int64(len(value))), value...)
		body = append(body, 0) // no headers
		records = append(binary.AppendVarint(records, int64(len(body))), body...)
	}
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		Length:               int32(batchHeadBytes - 12 + len(records)),
		PartitionLeaderEpoch: -1,
		Magic:                2,
		LastOffsetDelta:      int32(count - 1),
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           -1,
		ProducerEpoch:        -1,
		FirstSequence:        -1,
		NumRecords:           int32(count),
		Records:              records,
	}
	encoded := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(encoded[crcFrom-4:], crc32.Checksum(encoded[crcFrom:], crc32.MakeTable(crc32.Castagnoli)))
	return encoded, count
}

func produceRequest(topic string, index int32, batch []byte) []byte {
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition, partition.Records = index, batch
	data := kmsg.NewProduceRequestTopic()
	data.Topic, data.Partitions = topic, append(data.Partitions, partition)
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis, request.Topics = -1, 30_000, append(request.Topics, data)
	request.SetVersion(produceVersion)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 1)
}

// replayTo sends the request replayedAtOnce times in each round, with the responses to replaysInFlight rounds missing.
func replayTo(connection net.Conn, request []byte, rounds int) error {
	if err := connection.SetDeadline(time.Now().Add(2 * answerLimit)); err != nil {
		return err
	}
	written := bytes.Repeat(request, replayedAtOnce)
	failed := make(chan error, 1)
	tickets := make(chan struct{}, replaysInFlight)
	go func() {
		for range rounds {
			tickets <- struct{}{}
			if _, err := connection.Write(written); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	var head [4]byte
	var answers []byte
	for range rounds {
		if _, err := io.ReadFull(connection, head[:]); err != nil {
			return fmt.Errorf("no response: %w", err)
		}
		size := 4 + int(binary.BigEndian.Uint32(head[:])) // of each: they differ in their offsets only
		answers = append(answers[:0], make([]byte, replayedAtOnce*size-4)...)
		if _, err := io.ReadFull(connection, answers); err != nil {
			return fmt.Errorf("incomplete responses: %w", err)
		}
		for start := 0; start < len(answers); start += size {
			if err := produceError(answers[start:]); err != nil {
				return err
			}
		}
		<-tickets
	}
	return <-failed
}

// produceError reads the error code of a response after its size: correlation id, one topic with its name, one partition.
func produceError(answer []byte) error {
	nameBytes := int(binary.BigEndian.Uint16(answer[8:]))
	return kerr.ErrorForCode(int16(binary.BigEndian.Uint16(answer[10+nameBytes+8:])))
}
