package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const retryAfter = 2 * time.Millisecond

// first is started before the broker. It tries the port until it opens, creates a topic, writes one record and reports the
// wall-clock time of the acknowledgement, from which the caller computes the time since it started the broker.
func first(ctx context.Context, s settings) (report, error) {
	fmt.Println("waiting") // the caller may start the broker
	if err := waitForPort(ctx, s.brokers); err != nil {
		return nil, err
	}
	options := append(producerOptions(s, 0), kgo.SeedBrokers(s.brokers),
		kgo.RetryBackoffFn(func(int) time.Duration { return retryAfter }), kgo.MetadataMinAge(10*time.Millisecond))
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := createTopic(ctx, client, s.topic); err != nil {
		return nil, err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Value: make([]byte, s.sizeBytes)}).FirstErr(); err != nil {
		return nil, err
	}
	return report{"acknowledged_unix_ns": time.Now().UnixNano()}, nil
}

func waitForPort(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		if connection, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			return connection.Close()
		}
		time.Sleep(retryAfter)
	}
	return ctx.Err()
}

func createTopic(ctx context.Context, client *kgo.Client, name string) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 6, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = 10_000
	var last error
	for ctx.Err() == nil {
		response, err := request.RequestWith(ctx, client)
		if err == nil && len(response.Topics) == 1 {
			err = kerr.ErrorForCode(response.Topics[0].ErrorCode)
		}
		if err == nil || err == kerr.TopicAlreadyExists {
			return nil
		}
		last = err // a broker may open its port before it has joined its cluster
		time.Sleep(retryAfter)
	}
	return last
}
