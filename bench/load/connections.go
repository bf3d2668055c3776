package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	dialers      = 32
	largestReply = 1 << 20
)

// connections opens many connections, sends an ApiVersions request on each, and keeps them open and idle. If fewer than
// requested can be opened, "stopped_by" holds the error.
func connections(ctx context.Context, s settings) (report, error) {
	request := kmsg.NewPtrApiVersionsRequest()
	request.Version = 3
	request.ClientSoftwareName = "odradek-bench"
	request.ClientSoftwareVersion = "1"
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 1)

	wanted := make(chan struct{}, s.count)
	for range s.count {
		wanted <- struct{}{}
	}
	close(wanted)
	var lock sync.Mutex
	var open []net.Conn
	var stoppedBy error
	began := time.Now()
	var group sync.WaitGroup
	for range dialers {
		group.Go(func() {
			for range wanted {
				connection, err := greet(ctx, s.brokers, frame)
				lock.Lock()
				if err != nil {
					stoppedBy = err
					lock.Unlock()
					return
				}
				open = append(open, connection)
				lock.Unlock()
			}
		})
	}
	group.Wait()
	kept = open
	outcome := report{"connections": len(open), "seconds": time.Since(began).Seconds()}
	if stoppedBy != nil {
		outcome["stopped_by"] = stoppedBy.Error()
	}
	return outcome, nil
}

// kept references the connections until the program ends: garbage collection of a net.Conn closes it.
var kept []net.Conn

func greet(ctx context.Context, address string, frame []byte) (net.Conn, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return connection, exchange(connection, frame)
}

// exchange sends a frame and reads one response.
func exchange(connection net.Conn, frame []byte) error {
	if err := connection.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := connection.Write(frame); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(connection, size[:]); err != nil {
		return fmt.Errorf("no response to ApiVersions: %w", err)
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > largestReply {
		return fmt.Errorf("a response to ApiVersions of %d bytes", length)
	}
	if _, err := io.CopyN(io.Discard, connection, int64(length)); err != nil {
		return fmt.Errorf("incomplete response to ApiVersions: %w", err)
	}
	return connection.SetDeadline(time.Time{})
}
