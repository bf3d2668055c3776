package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const copyPrefix = "copy of "

func (d *driver) transactionalOptions(a arguments) []kgo.Opt {
	return []kgo.Opt{
		kgo.TransactionalID(a.TransactionalID), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
}

// begin opens a transaction and sends records in it; it returns their offsets.
func (d *driver) begin(ctx context.Context, a arguments, records []record) (*kgo.Client, []int64, error) {
	client, err := d.newClient(d.transactionalOptions(a)...)
	if err != nil {
		return nil, nil, err
	}
	if err := client.BeginTransaction(); err != nil {
		return client, nil, err
	}
	offsets := []int64{}
	for _, each := range records {
		sent := &kgo.Record{
			Topic: a.Topic, Partition: a.Partition, Key: writtenBytes(each.Key), Value: writtenBytes(each.Value),
			Timestamp: time.UnixMilli(*each.Timestamp),
		}
		result, err := client.ProduceSync(ctx, sent).First()
		if err != nil {
			return client, nil, err
		}
		offsets = append(offsets, result.Offset)
	}
	return client, offsets, nil
}

func end(a arguments) kgo.TransactionEndTry {
	return kgo.TransactionEndTry(a.Commits)
}

func (d *driver) produceInTransaction(ctx context.Context, a arguments) (any, error) {
	client, offsets, err := d.begin(ctx, a, a.Records)
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		return nil, err
	}
	return object{"offsets": offsets}, client.EndTransaction(ctx, end(a))
}

// alternate commits a transaction and aborts the next one in each round, without a pause between them.
func (d *driver) alternate(ctx context.Context, a arguments) (any, error) {
	client, err := d.newClient(d.transactionalOptions(a)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for range a.Rounds {
		for _, each := range []struct {
			value string
			ends  kgo.TransactionEndTry
			clear func(context.Context) error
		}{{"kept", kgo.TryCommit, client.Flush}, {"dropped", kgo.TryAbort, client.AbortBufferedRecords}} {
			if err := client.BeginTransaction(); err != nil {
				return nil, err
			}
			for partition := range a.Partitions {
				client.Produce(ctx, &kgo.Record{Topic: a.Topic, Partition: partition, Value: []byte(each.value)}, nil)
			}
			if err := each.clear(ctx); err != nil {
				return nil, err
			}
			if err := client.EndTransaction(ctx, each.ends); err != nil {
				return nil, err
			}
		}
	}
	return object{"rounds": a.Rounds}, nil
}

func (d *driver) copy(ctx context.Context, a arguments) (any, error) {
	options := append(d.transactionalOptions(a),
		kgo.ConsumerGroup(a.Group), kgo.ConsumeTopics(a.Topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	session, err := kgo.NewGroupTransactSession(append(options, d.connection...)...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return nil, err
	}
	copied := 0
	for copied < a.Count && ctx.Err() == nil {
		fetches := session.PollRecords(ctx, a.Count-copied)
		for _, failure := range fetches.Errors() {
			return nil, failure.Err
		}
		for _, each := range fetches.Records() {
			sent := &kgo.Record{
				Topic: a.Target, Key: each.Key, Value: append([]byte(copyPrefix), each.Value...), Timestamp: each.Timestamp,
			}
			if err := session.ProduceSync(ctx, sent).FirstErr(); err != nil {
				return nil, err
			}
			copied++
		}
	}
	_, err = session.End(ctx, end(a))
	return object{"copied": copied}, err
}

func (d *driver) committed(ctx context.Context, a arguments) (any, error) {
	offsets, err := d.admin.FetchOffsets(ctx, a.Group)
	if err != nil {
		return nil, err
	}
	if found, exists := offsets.Lookup(a.Topic, a.Partition); exists && found.At >= 0 {
		return object{"offset": found.At}, nil
	}
	return object{"offset": nil}, nil
}

func (d *driver) fence(ctx context.Context, a arguments) (any, error) {
	fenced, _, err := d.begin(ctx, a, a.Records[:1])
	if fenced != nil {
		defer fenced.Close()
	}
	if err != nil {
		return nil, err
	}
	next, _, err := d.begin(ctx, a, a.Records[1:])
	if next != nil {
		defer next.Close()
	}
	if err != nil {
		return nil, err
	}
	if err := next.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return nil, err
	}
	if err := fenced.EndTransaction(ctx, kgo.TryCommit); err == nil {
		return object{"error": "the fenced producer could commit"}, nil
	}
	return object{"error": "NONE"}, nil
}
