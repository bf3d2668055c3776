package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Transactions of version 2 (KIP-890): partitions join by Produce, and the epoch rises with EndTxn. Produce 12 is the last
// version that names topics.
const (
	initProducerVersion   = 5
	transactionalProduce  = 12
	endTransactionVersion = 5

	transactionTimeout = time.Minute
	concurrentRetry    = time.Millisecond // after CONCURRENT_TRANSACTIONS: the markers are being written
	endersAtOnce       = 32
	headerBytes        = 61
	transactionalFlag  = 1 << 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openTransaction is a transactional producer on a connection of its own.
type openTransaction struct {
	*wire
	transactionalID string
	producerID      int64
	epoch           int16
	partition       int32
	busy            sync.Mutex // a connection has one request at a time
}

// open has s.producers producers with one open transaction each, all the time: a producer commits, and begins its next
// transaction with a batch of s.inTransaction records. For s.seconds, 32 producers at a time do so as fast as they can, which
// gives the rate. For as long, they commit s.rate times per second, which gives the delays of commits: at equal load, so
// that a broker which takes more transactions does not have longer queues because of it.
func open(ctx context.Context, s settings) (report, error) {
	value := make([]byte, s.sizeBytes)
	_, _ = rand.Read(value) // never fails
	records := encodeRecords(value, s.inTransaction)
	producers := make([]*openTransaction, s.producers)
	for i := range producers {
		producer, err := openFirst(ctx, s, i, records)
		if err != nil {
			return nil, err
		}
		defer producer.connection.Close()
		producers[i] = producer
	}
	began := time.Now()
	count, err := commitAtOnce(ctx, s, producers, records)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	delays, err := commitAtRate(ctx, s, producers, records)
	if err != nil {
		return nil, err
	}
	outcome := percentiles(delays)
	outcome["transactions"] = count + len(delays)
	outcome["transactions_per_s"] = float64(count) / took.Seconds()
	outcome["records"] = (count + len(delays)) * s.inTransaction
	outcome["seconds"] = time.Since(began).Seconds()
	return outcome, endAll(ctx, producers)
}

// commitAtOnce lets 32 workers commit, each the transactions of its own producers in turn, and returns how many they were.
func commitAtOnce(ctx context.Context, s settings, producers []*openTransaction, records []byte) (int, error) {
	workers := min(endersAtOnce, len(producers))
	counts := make([]int, workers)
	failures := make([]error, workers)
	began := time.Now()
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for number := i; time.Since(began) < s.duration() && failures[i] == nil; counts[i]++ {
				_, failures[i] = producers[number].commit(ctx, s, records)
				if number += workers; number >= len(producers) {
					number = i
				}
			}
		})
	}
	group.Wait()
	total := 0
	for _, count := range counts {
		total += count
	}
	return total, errors.Join(failures...)
}

// commitAtRate commits the transactions of the producers in turn, s.rate per second, whether the earlier ones are answered
// or not, and returns the delays.
func commitAtRate(ctx context.Context, s settings, producers []*openTransaction, records []byte) ([]time.Duration, error) {
	total := s.rate * s.seconds
	delays := make([]time.Duration, total)
	failures := make([]error, total)
	began := time.Now()
	var group sync.WaitGroup
	for number := range total {
		time.Sleep(time.Until(began.Add(time.Second * time.Duration(number) / time.Duration(s.rate))))
		group.Go(func() { delays[number], failures[number] = producers[number%len(producers)].commit(ctx, s, records) })
	}
	group.Wait()
	return delays, errors.Join(failures...)
}

// commit ends the open transaction, begins the next, and returns how long the end took.
func (p *openTransaction) commit(ctx context.Context, s settings, records []byte) (time.Duration, error) {
	p.busy.Lock()
	defer p.busy.Unlock()
	began := time.Now()
	if err := p.end(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, p.begin(ctx, s, records)
}

// openFirst connects a producer, gets its id and begins its first transaction, before the measured time.
func openFirst(ctx context.Context, s settings, number int, records []byte) (*openTransaction, error) {
	w, err := dial(ctx, s.brokers)
	if err != nil {
		return nil, err
	}
	producer := &openTransaction{wire: w, transactionalID: fmt.Sprintf("bench-open-%d", number)}
	producer.partition = int32(number % s.partitions)
	if err := producer.findTransactionCoordinator(ctx); err != nil {
		return nil, err
	}
	if err := producer.init(ctx); err != nil {
		return nil, err
	}
	return producer, producer.begin(ctx, s, records)
}

func (p *openTransaction) findTransactionCoordinator(ctx context.Context) error {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey, request.CoordinatorType = p.transactionalID, 1
	return patiently(ctx, func() error {
		response, err := p.ask(request, findCoordinatorVersion)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(response.(*kmsg.FindCoordinatorResponse).ErrorCode)
	})
}

func (p *openTransaction) init(ctx context.Context) error {
	request := kmsg.NewPtrInitProducerIDRequest()
	request.TransactionalID, request.TransactionTimeoutMillis = &p.transactionalID, int32(transactionTimeout/time.Millisecond)
	return whileConcurrent(ctx, func() error {
		answer, err := p.ask(request, initProducerVersion)
		if err != nil {
			return err
		}
		response := answer.(*kmsg.InitProducerIDResponse)
		p.producerID, p.epoch = response.ProducerID, response.ProducerEpoch
		return kerr.ErrorForCode(response.ErrorCode)
	})
}

// begin writes one batch, by which its partition joins the transaction.
func (p *openTransaction) begin(ctx context.Context, s settings, records []byte) error {
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Partition, partition.Records = p.partition, p.batch(records, s.inTransaction)
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.Partitions = s.topic, append(topic.Partitions, partition)
	request := kmsg.NewPtrProduceRequest()
	request.TransactionID, request.Acks, request.TimeoutMillis = &p.transactionalID, -1, 30_000
	request.Topics = append(request.Topics, topic)
	return whileConcurrent(ctx, func() error {
		answer, err := p.ask(request, transactionalProduce)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	})
}

func (p *openTransaction) end(ctx context.Context) error {
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.ProducerID, request.ProducerEpoch, request.Commit = p.transactionalID, p.producerID, p.epoch, true
	return whileConcurrent(ctx, func() error {
		answer, err := p.ask(request, endTransactionVersion)
		if err != nil {
			return err
		}
		response := answer.(*kmsg.EndTxnResponse)
		if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
			return err
		}
		p.producerID, p.epoch = response.ProducerID, response.ProducerEpoch
		return nil
	})
}

// endAll leaves no open transaction behind, in which the next run would have to wait for its abort.
func endAll(ctx context.Context, producers []*openTransaction) error {
	for _, producer := range producers {
		if err := producer.end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// whileConcurrent repeats a request while the end of the producer's last transaction is not complete.
func whileConcurrent(ctx context.Context, ask func() error) error {
	for {
		err := patiently(ctx, ask)
		if err != kerr.ConcurrentTransactions || ctx.Err() != nil {
			return err
		}
		time.Sleep(concurrentRetry)
	}
}

// batch returns a transactional batch. A producer's sequence begins at 0 with every epoch, and so with every transaction.
func (p *openTransaction) batch(records []byte, count int) []byte {
	now := time.Now().UnixMilli()
	batch := kmsg.RecordBatch{
		Length:               int32(headerBytes - 12 + len(records)), // all that follows the length
		PartitionLeaderEpoch: -1,
		Magic:                2,
		Attributes:           transactionalFlag,
		LastOffsetDelta:      int32(count - 1),
		FirstTimestamp:       now,
		MaxTimestamp:         now,
		ProducerID:           p.producerID,
		ProducerEpoch:        p.epoch,
		NumRecords:           int32(count),
		Records:              records,
	}
	encoded := batch.AppendTo(make([]byte, 0, headerBytes+len(records)))
	binary.BigEndian.PutUint32(encoded[17:], crc32.Checksum(encoded[21:], castagnoli))
	return encoded
}

func encodeRecords(value []byte, count int) []byte {
	var records []byte
	for i := range count {
		record := kmsg.Record{OffsetDelta: int32(i), Value: value}
		record.Length = int32(len(record.AppendTo(nil)) - 1) // a length of 0 takes one byte
		records = record.AppendTo(records)
	}
	return records
}
