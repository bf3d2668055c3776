package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The versions that are spoken here are the last ones before flexible headers, which every Kafka broker knows.
const (
	findCoordinatorVersion = 2
	joinGroupVersion       = 5
	syncGroupVersion       = 3
	heartbeatVersion       = 3
	offsetCommitVersion    = 7
	offsetFetchVersion     = 5
)

const answerLimit = 60 * time.Second

// wire is one connection, one request at a time: as light as a member of a group can be, so that thousands fit beside the
// broker that is measured.
type wire struct {
	connection net.Conn
	formatter  *kmsg.RequestFormatter
	number     int32
	buffer     []byte
}

func dial(ctx context.Context, address string) (*wire, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &wire{connection: connection, formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench"))}, nil
}

// ask sends a request in a version and reads its answer into the response that belongs to it.
func (w *wire) ask(request kmsg.Request, version int16) (kmsg.Response, error) {
	request.SetVersion(version)
	w.number++
	if err := w.connection.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return nil, err
	}
	w.buffer = w.formatter.AppendRequest(w.buffer[:0], request, w.number)
	if _, err := w.connection.Write(w.buffer); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(w.connection, head[:]); err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	length := binary.BigEndian.Uint32(head[:4])
	if number := int32(binary.BigEndian.Uint32(head[4:])); number != w.number || length < 4 || length > largestReply {
		return nil, fmt.Errorf("an answer of %d bytes to request %d where %d was asked", length, number, w.number)
	}
	body := make([]byte, length-4)
	if _, err := io.ReadFull(w.connection, body); err != nil {
		return nil, fmt.Errorf("half an answer: %w", err)
	}
	response := request.ResponseKind()
	return response, response.ReadFrom(body)
}

// findCoordinator waits until a group has one: Apache Kafka makes the topic of offsets when it is first asked.
func (w *wire) findCoordinator(ctx context.Context, group string) error {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey = group
	return patiently(ctx, func() error {
		response, err := w.ask(request, findCoordinatorVersion)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(response.(*kmsg.FindCoordinatorResponse).ErrorCode)
	})
}

// patiently repeats what fails only because the coordinator is not there yet, or still loads.
func patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		switch err {
		case kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryAfter):
		}
	}
}
