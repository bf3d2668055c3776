package main

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

var done = object{"error": "NONE"}

func (d *driver) cluster(ctx context.Context, _ arguments) (any, error) {
	metadata, err := d.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	return object{"cluster_id": metadata.Cluster, "nodes": metadata.Brokers.NodeIDs(), "controller": metadata.Controller}, nil
}

func (d *driver) createTopic(ctx context.Context, a arguments) (any, error) {
	create := d.admin.CreateTopics
	if a.ValidateOnly {
		create = d.admin.ValidateCreateTopics
	}
	created, err := create(ctx, a.Partitions, a.ReplicationFactor, a.Configs, a.Topic)
	if err != nil {
		return nil, err
	}
	return done, created.Error()
}

func (d *driver) deleteTopic(ctx context.Context, a arguments) (any, error) {
	deleted, err := d.admin.DeleteTopics(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	return done, deleted.Error()
}

func (d *driver) listTopics(ctx context.Context, _ arguments) (any, error) {
	topics, err := d.admin.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	return topics.Names(), nil
}

func (d *driver) describeTopic(ctx context.Context, a arguments) (any, error) {
	topics, err := d.admin.ListTopics(ctx, a.Topic)
	if err != nil {
		return nil, err
	}
	topic := topics[a.Topic]
	if topic.Err != nil {
		return nil, topic.Err
	}
	partitions := []object{}
	for _, each := range topic.Partitions.Sorted() {
		partitions = append(partitions, object{
			"partition": each.Partition, "leader": each.Leader, "replicas": each.Replicas, "in_sync": each.ISR,
		})
	}
	return object{
		"error": "NONE", "topic_id": topic.ID.String(), "internal": topic.IsInternal, "partitions": partitions,
	}, nil
}

func (d *driver) createPartitions(ctx context.Context, a arguments) (any, error) {
	grown, err := d.admin.UpdatePartitions(ctx, a.Count, a.Topic)
	if err != nil {
		return nil, err
	}
	return done, grown.Error()
}

func (d *driver) offset(ctx context.Context, a arguments) (any, error) {
	var listed kadm.ListedOffsets
	var err error
	switch at := a.At.(type) {
	case float64:
		listed, err = d.admin.ListOffsetsAfterMilli(ctx, int64(at), a.Topic)
	case string:
		list := map[string]func(context.Context, ...string) (kadm.ListedOffsets, error){
			"earliest":      d.admin.ListStartOffsets,
			"latest":        d.admin.ListEndOffsets,
			"max_timestamp": d.admin.ListMaxTimestampOffsets,
		}[at]
		listed, err = list(ctx, a.Topic)
	}
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(a.Topic, a.Partition)
	return object{"offset": found.Offset, "at_timestamp": found.Timestamp}, found.Err
}

func (d *driver) describeConfigs(ctx context.Context, a arguments) (any, error) {
	var described kadm.ResourceConfigs
	var err error
	if a.Resource == "topic" {
		described, err = d.admin.DescribeTopicConfigs(ctx, a.Topic)
	} else {
		brokers, listErr := d.admin.ListBrokers(ctx)
		if listErr != nil {
			return nil, listErr
		}
		described, err = d.admin.DescribeBrokerConfigs(ctx, brokers.NodeIDs()...)
	}
	if err != nil {
		return nil, err
	}
	if described[0].Err != nil {
		return nil, described[0].Err
	}
	configs := object{}
	for _, each := range described[0].Configs {
		for _, key := range a.Keys {
			if each.Key == key {
				configs[key] = object{"value": each.Value, "source": each.Source.String(), "sensitive": each.Sensitive}
			}
		}
	}
	return object{"error": "NONE", "configs": configs}, nil
}

func (d *driver) alterConfigs(ctx context.Context, a arguments) (any, error) {
	operations := map[string]kadm.IncrementalOp{
		"set": kadm.SetConfig, "delete": kadm.DeleteConfig, "append": kadm.AppendConfig, "subtract": kadm.SubtractConfig,
	}
	changes := []kadm.AlterConfig{}
	for _, each := range a.Operations {
		changes = append(changes, kadm.AlterConfig{Op: operations[strings.ToLower(*each[0])], Name: *each[1], Value: each[2]})
	}
	var altered kadm.AlterConfigsResponses
	var err error
	switch a.Resource {
	case "topic":
		altered, err = d.admin.AlterTopicConfigs(ctx, changes, a.Topic)
	case "broker-default":
		altered, err = d.admin.AlterBrokerConfigs(ctx, changes)
	default:
		brokers, listErr := d.admin.ListBrokers(ctx)
		if listErr != nil {
			return nil, listErr
		}
		altered, err = d.admin.AlterBrokerConfigs(ctx, changes, brokers.NodeIDs()...)
	}
	if err != nil {
		return nil, err
	}
	return done, altered[0].Err
}

func (d *driver) replaceConfigs(ctx context.Context, a arguments) (any, error) {
	changes := []kadm.AlterConfig{}
	for name, value := range a.Configs {
		changes = append(changes, kadm.AlterConfig{Name: name, Value: value})
	}
	altered, err := d.admin.AlterTopicConfigsState(ctx, changes, a.Topic)
	if err != nil {
		return nil, err
	}
	return done, altered[0].Err
}

func (d *driver) deleteRecords(ctx context.Context, a arguments) (any, error) {
	var offsets kadm.Offsets
	offsets.AddOffset(a.Topic, a.Partition, a.Before, -1)
	deleted, err := d.admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return nil, err
	}
	answer, err := deleted.On(a.Topic, a.Partition, nil)
	if err != nil {
		return nil, err
	}
	return object{"error": "NONE", "low_watermark": answer.LowWatermark}, answer.Err
}
