package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Apache Kafka may answer the first records of a transaction with CONCURRENT_TRANSACTIONS, because it writes the markers of
// the one before after it has answered the commit. franz-go sends them again after it has refreshed its metadata, for which
// it would wait up to 5 s; the Java client waits this long.
const concurrentPause = 20 * time.Millisecond

// transactionOptions spread the records of a transaction over all partitions, so that each has a part in it.
func transactionOptions(s settings) []kgo.Opt {
	return append(producerOptions(s, s.linger),
		kgo.TransactionalID("bench-"+s.topic), // one that Apache Kafka has no open transaction of
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.MetadataMinAge(concurrentPause),
	)
}

// transactions writes as one producer for s.seconds, in transactions of s.inTransaction records, one after the other. The
// delay is the time of a commit: from the acknowledgement of the last record until the transaction is ended.
func transactions(ctx context.Context, s settings) (report, error) {
	client, err := newClient(ctx, s, transactionOptions(s)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	value := make([]byte, s.sizeBytes)
	_, _ = rand.Read(value) // never fails
	values := make([][]byte, s.inTransaction)
	for i := range values {
		values[i] = value
	}
	commit := func(ctx context.Context) error { return client.EndTransaction(ctx, kgo.TryCommit) }
	// The first transaction finds the coordinator, gets a producer id and loads metadata.
	if _, err := transact(ctx, client, values, commit); err != nil {
		return nil, err
	}
	var delays []time.Duration
	began := time.Now()
	for time.Since(began) < s.duration() {
		delay, err := transact(ctx, client, values, commit)
		if err != nil {
			return nil, fmt.Errorf("after %d transactions: %w", len(delays), err)
		}
		delays = append(delays, delay)
	}
	return transactionSummary(len(delays)*s.inTransaction, s, delays, time.Since(began)), nil
}

// transact writes the values in one transaction and returns how long `commit` took.
func transact(ctx context.Context, client *kgo.Client, values [][]byte, commit func(context.Context) error) (time.Duration, error) {
	if err := client.BeginTransaction(); err != nil {
		return 0, err
	}
	var refused error
	acknowledged := func(_ *kgo.Record, err error) {
		if err != nil {
			refused = err // callbacks run one at a time
		}
	}
	slab := make([]kgo.Record, len(values))
	for i := range slab {
		slab[i].Value = values[i]
		client.Produce(ctx, &slab[i], acknowledged)
	}
	if err := client.Flush(ctx); err != nil {
		return 0, err
	}
	if refused != nil {
		return 0, refused
	}
	began := time.Now()
	err := commit(ctx)
	return time.Since(began), err
}

// transform reads s.source as the only member of a group and writes its values to s.topic, in transactions that commit
// its offsets as well, for s.seconds or until s.records are read. The delay is that of the offsets and of the end of the
// transaction. Time begins with the first records that are read: joining a group takes seconds.
func transform(ctx context.Context, s settings) (report, error) {
	options := append(transactionOptions(s),
		kgo.SeedBrokers(s.brokers),
		kgo.ConsumerGroup("bench-"+s.topic), // of this run: it has committed nothing
		kgo.ConsumeTopics(s.source),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxPartitionBytes(1<<20),
	)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	commit := func(ctx context.Context) error {
		committed, err := session.End(ctx, kgo.TryCommit)
		if err == nil && !committed {
			err = fmt.Errorf("the transaction was aborted")
		}
		return err
	}
	var delays []time.Duration
	var began time.Time
	records := 0
	for records < s.records && (records == 0 || time.Since(began) < s.duration()) {
		fetches := session.PollRecords(ctx, s.inTransaction)
		for _, failure := range fetches.Errors() {
			return nil, fmt.Errorf("after %d of %d records: %w", records, s.records, failure.Err)
		}
		if records == 0 {
			began = time.Now()
		}
		values := make([][]byte, 0, s.inTransaction)
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, record.Value) })
		if len(values) == 0 {
			continue
		}
		delay, err := transact(ctx, session.Client(), values, commit)
		if err != nil {
			return nil, fmt.Errorf("after %d of %d records: %w", records, s.records, err)
		}
		records += len(values)
		delays = append(delays, delay)
	}
	return transactionSummary(records, s, delays, time.Since(began)), nil
}

func transactionSummary(records int, s settings, delays []time.Duration, took time.Duration) report {
	outcome := summary(s, delays, records, took)
	outcome["transactions"] = len(delays)
	outcome["transactions_per_s"] = float64(len(delays)) / took.Seconds()
	return outcome
}
