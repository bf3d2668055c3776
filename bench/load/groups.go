package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	membersOfGroup    = 2
	sessionTimeout    = 10 * time.Second
	rebalanceTimeout  = 60 * time.Second
	heartbeatInterval = time.Second
)

// member is a group member that only sends heartbeats. It is settled once its generation holds every member.
type member struct {
	*wire
	group      string
	id         string
	generation int32
	settled    bool
}

// tally holds the figures of all members.
type tally struct {
	lock       sync.Mutex
	delays     []time.Duration
	expulsions atomic.Int64
	unsettled  sync.WaitGroup
	measuring  atomic.Bool
}

// groups starts the requested number of groups with two members each, waits until all are settled, then measures their
// heartbeats and counts the members that are expelled.
func groups(ctx context.Context, s settings) (report, error) {
	var sums tally
	running, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, s.groups*membersOfGroup)
	began := time.Now()
	var all sync.WaitGroup
	for number := range s.groups * membersOfGroup {
		sums.unsettled.Add(1)
		all.Go(func() {
			if err := stay(running, s, groupName(number/membersOfGroup), &sums); err != nil {
				failed <- err
			}
		})
	}
	settled := make(chan struct{})
	go func() { sums.unsettled.Wait(); close(settled) }()
	select {
	case <-settled:
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("the groups did not settle: %w", ctx.Err())
	}
	took := time.Since(began)
	sums.measuring.Store(true)
	select {
	case <-time.After(time.Duration(s.seconds) * time.Second):
	case err := <-failed:
		return nil, err
	}
	stop()
	all.Wait()
	outcome := percentiles(sums.delays)
	outcome["heartbeats"] = len(sums.delays)
	outcome["expulsions"] = sums.expulsions.Load()
	outcome["settle_s"] = took.Seconds()
	return outcome, nil
}

// stay joins, sends heartbeats, and joins again when the broker requires it.
func stay(ctx context.Context, s settings, group string, sums *tally) error {
	w, err := dial(ctx, s.brokers)
	if err != nil {
		return err
	}
	defer w.connection.Close()
	if err := w.findCoordinator(ctx, group); err != nil {
		return err
	}
	m := &member{wire: w, group: group}
	for ctx.Err() == nil {
		err := m.enter(sums)
		if err == nil {
			err = m.beat(ctx, sums)
		}
		switch err {
		case nil, kerr.RebalanceInProgress, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator:
		case kerr.UnknownMemberID, kerr.IllegalGeneration:
			if sums.measuring.Load() {
				sums.expulsions.Add(1)
			}
			m.id = ""
		default:
			if ctx.Err() == nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) enter(sums *tally) error {
	joined, err := m.join()
	if err != nil {
		return err
	}
	request := kmsg.NewPtrSyncGroupRequest()
	request.Group, request.Generation, request.MemberID = m.group, m.generation, m.id
	if joined.LeaderID == m.id {
		for _, each := range joined.Members {
			assignment := kmsg.NewConsumerMemberAssignment()
			assignment.UserData = []byte{byte(len(joined.Members))} // so that every member knows the size of the group
			mine := kmsg.NewSyncGroupRequestGroupAssignment()
			mine.MemberID, mine.MemberAssignment = each.MemberID, assignment.AppendTo(nil)
			request.GroupAssignment = append(request.GroupAssignment, mine)
		}
	}
	answer, err := m.ask(request, syncGroupVersion)
	if err != nil {
		return err
	}
	synced := answer.(*kmsg.SyncGroupResponse)
	if err := kerr.ErrorForCode(synced.ErrorCode); err != nil {
		return err
	}
	var assigned kmsg.ConsumerMemberAssignment
	if err := assigned.ReadFrom(synced.MemberAssignment); err != nil {
		return err
	}
	if !m.settled && len(assigned.UserData) == 1 && assigned.UserData[0] == membersOfGroup {
		m.settled = true
		sums.unsettled.Done()
	}
	return nil
}

func (m *member) join() (*kmsg.JoinGroupResponse, error) {
	metadata := kmsg.NewConsumerMemberMetadata()
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", metadata.AppendTo(nil)
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.ProtocolType = m.group, "consumer"
	request.SessionTimeoutMillis = int32(sessionTimeout.Milliseconds())
	request.RebalanceTimeoutMillis = int32(rebalanceTimeout.Milliseconds())
	request.Protocols = append(request.Protocols, protocol)
	for {
		request.MemberID = m.id
		answer, err := m.ask(request, joinGroupVersion)
		if err != nil {
			return nil, err
		}
		joined := answer.(*kmsg.JoinGroupResponse)
		m.id, m.generation = joined.MemberID, joined.Generation
		if err := kerr.ErrorForCode(joined.ErrorCode); err != kerr.MemberIDRequired {
			return joined, err
		}
	}
}

// beat sends heartbeats until one is answered with an error. The first is sent at a random time, because the members of
// real groups are not synchronized.
func (m *member) beat(ctx context.Context, sums *tally) error {
	pause := rand.N(heartbeatInterval)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = heartbeatInterval
		request := kmsg.NewPtrHeartbeatRequest()
		request.Group, request.Generation, request.MemberID = m.group, m.generation, m.id
		began := time.Now()
		answer, err := m.ask(request, heartbeatVersion)
		if err != nil {
			return err
		}
		if sums.measuring.Load() {
			sums.lock.Lock()
			sums.delays = append(sums.delays, time.Since(began))
			sums.lock.Unlock()
		}
		if err := kerr.ErrorForCode(answer.(*kmsg.HeartbeatResponse).ErrorCode); err != nil {
			return err
		}
	}
}
