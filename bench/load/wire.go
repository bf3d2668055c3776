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

// The last versions before flexible versions, which every Kafka broker supports.
const (
	findCoordinatorVersion = 2
	joinGroupVersion       = 5
	syncGroupVersion       = 3
	heartbeatVersion       = 3
	offsetCommitVersion    = 7
	offsetFetchVersion     = 5
)

const answerLimit = 60 * time.Second

// wire is a connection with one request at a time. It is small, so that thousands of members fit beside the measured
// broker.
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

// ask sends a request in a version and returns its response.
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
		return nil, fmt.Errorf("no response: %w", err)
	}
	length := binary.BigEndian.Uint32(head[:4])
	if number := int32(binary.BigEndian.Uint32(head[4:])); number != w.number || length < 4 || length > largestReply {
		return nil, fmt.Errorf("a response of %d bytes to request %d instead of %d", length, number, w.number)
	}
	body := make([]byte, length-4)
	if _, err := io.ReadFull(w.connection, body); err != nil {
		return nil, fmt.Errorf("incomplete response: %w", err)
	}
	response := request.ResponseKind()
	if response.IsFlexible() && len(body) > 0 {
		body = body[1:] // the tagged fields of the header: none
	}
	return response, response.ReadFrom(body)
}

// findCoordinator waits until a group has a coordinator: Apache Kafka creates the offsets topic on the first request.
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

// patiently retries a call while the coordinator is not available or is loading.
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
