package main

import (
	"bytes"
	"context"
	"hash/crc32"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const longBytes = 100

type record struct {
	Key       any     `json:"key"`
	Value     any     `json:"value"`
	Headers   [][]any `json:"headers"`
	Timestamp *int64  `json:"timestamp"`
}

// writtenBytes is what a step's argument stands for: one character is one byte.
func writtenBytes(value any) []byte {
	switch v := value.(type) {
	case string:
		data := make([]byte, 0, len(v))
		for _, character := range v {
			data = append(data, byte(character))
		}
		return data
	case map[string]any:
		return bytes.Repeat(writtenBytes(v["fill"]), int(v["length"].(float64)))
	}
	return nil
}

func shownBytes(data []byte) any {
	if data == nil {
		return nil
	}
	if len(data) > longBytes {
		return object{"length": len(data), "crc32": crc32.ChecksumIEEE(data)}
	}
	characters := make([]rune, len(data))
	for index, each := range data {
		characters[index] = rune(each)
	}
	return string(characters)
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (d *driver) produce(ctx context.Context, a arguments) (any, error) {
	acks := map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}[a.Acks]
	options := []kgo.Opt{
		kgo.AllowAutoTopicCreation(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[a.Codec]), kgo.RequiredAcks(acks), kgo.ProducerBatchMaxBytes(4_000_000),
		kgo.ProducerLinger(20 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.UnknownTopicRetries(-1), // of a topic that is made by use it would hear five times in 0.3 s, and give up
	}
	if !a.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := d.newClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answers := make([]object, len(a.Records))
	for index, each := range a.Records {
		sent := &kgo.Record{
			Topic: a.Topic, Partition: a.Partition, Key: writtenBytes(each.Key), Value: writtenBytes(each.Value),
		}
		for _, header := range each.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header[0].(string), Value: writtenBytes(header[1])})
		}
		if each.Timestamp != nil {
			sent.Timestamp = time.UnixMilli(*each.Timestamp)
		}
		client.Produce(ctx, sent, func(written *kgo.Record, err error) {
			switch {
			case err != nil:
				answers[index] = object{"error": errorName(err)}
			case a.Acks == 0:
				answers[index] = object{"offset": nil}
			default:
				answers[index] = object{"offset": written.Offset}
			}
		})
	}
	return answers, client.Flush(ctx)
}

func place(start any) kgo.Offset {
	switch at := start.(type) {
	case float64:
		return kgo.NewOffset().At(int64(at))
	case map[string]any:
		return kgo.NewOffset().AfterMilli(int64(at["timestamp"].(float64)))
	}
	return kgo.NewOffset().AtStart()
}

func (d *driver) consumer(topic string, starts map[int32]kgo.Offset, reset, isolation string) (*kgo.Client, error) {
	policy := kgo.NoResetOffset()
	if reset == "earliest" {
		policy = kgo.NewOffset().AtStart()
	}
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	return d.newClient(
		kgo.FetchIsolationLevel(level), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.ConsumeResetOffset(policy), kgo.MetadataMinAge(50*time.Millisecond), kgo.FetchMaxWait(500*time.Millisecond),
	)
}

func (d *driver) consume(ctx context.Context, a arguments) (any, error) {
	starts := map[int32]kgo.Offset{}
	for _, each := range a.Assignments {
		starts[int32(each[0].(float64))] = place(each[1])
	}
	client, err := d.consumer(a.Topic, starts, a.Reset, a.Isolation)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return poll(ctx, client, a.Count)
}

func (d *driver) consumeNew(ctx context.Context, a arguments) (any, error) {
	ends, err := d.admin.ListEndOffsets(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	end, _ := ends.Lookup(a.Topic, a.Partition)
	client, err := d.consumer(a.Topic, map[int32]kgo.Offset{a.Partition: kgo.NewOffset().At(end.Offset)}, "none", "")
	if err != nil {
		return nil, err
	}
	defer client.Close()
	a.Codec, a.Acks = "none", -1
	if _, err := d.produce(ctx, a); err != nil {
		return nil, err
	}
	return poll(ctx, client, len(a.Records))
}

func poll(ctx context.Context, client *kgo.Client, count int) (any, error) {
	var records []*kgo.Record
	for len(records) < count && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, failure := range fetches.Errors() {
			if ctx.Err() == nil {
				return nil, failure.Err
			}
		}
		records = append(records, fetches.Records()...)
	}
	sort.Slice(records, func(i, j int) bool {
		if records[i].Partition != records[j].Partition {
			return records[i].Partition < records[j].Partition
		}
		return records[i].Offset < records[j].Offset
	})
	shown := []object{}
	for _, each := range records {
		shown = append(shown, shownRecord(each))
	}
	return object{"records": shown}, nil
}

// readToEnds reads each partition from its first offset to its end, until an error, or until nothing comes for a while.
func (d *driver) readToEnds(ctx context.Context, a arguments) (any, error) {
	starts, ends := map[int32]kgo.Offset{}, map[int32]int64{}
	for _, each := range a.Ends {
		starts[each[0]], ends[each[0]] = kgo.NewOffset().At(0), int64(each[1])
	}
	client, err := d.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{a.Topic: starts}), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxPartitionBytes(a.FetchBytes), kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	records, failures := map[int32][][]any{}, map[int32]string{}
	leave := func(partition int32) {
		delete(ends, partition)
		client.PauseFetchPartitions(map[string][]int32{a.Topic: {partition}})
	}
	// On a busy machine, the first record may take longer than what is quiet between others.
	wait := patience
	for len(ends) > 0 && ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, wait)
		fetches := client.PollFetches(quiet)
		isQuiet := quiet.Err() != nil
		cancel()
		if isQuiet {
			break
		}
		wait = time.Duration(a.QuietMs) * time.Millisecond
		fetches.EachRecord(func(r *kgo.Record) {
			records[r.Partition] = append(records[r.Partition], []any{r.Offset, shownBytes(r.Value)})
			if r.Offset+1 >= ends[r.Partition] {
				leave(r.Partition)
			}
		})
		fetches.EachError(func(_ string, partition int32, failure error) {
			failures[partition] = failure.Error()
			leave(partition)
		})
	}
	client.Close()
	return object{"records": records, "errors": failures}, nil
}

func shownRecord(r *kgo.Record) object {
	headers := [][]any{}
	for _, header := range r.Headers {
		headers = append(headers, []any{header.Key, shownBytes(header.Value)})
	}
	kind := "CREATE_TIME"
	if r.Attrs.TimestampType() == 1 {
		kind = "LOG_APPEND_TIME"
	}
	return object{
		"partition": r.Partition, "offset": r.Offset, "timestamp": r.Timestamp.UnixMilli(), "timestamp_type": kind,
		"key": shownBytes(r.Key), "value": shownBytes(r.Value), "headers": headers, "leader_epoch": r.LeaderEpoch,
	}
}
