package work

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/callcore"
	"github.com/gopegasus/pegasus/internal/datacore"
	"github.com/gopegasus/pegasus/internal/link"
	"github.com/gopegasus/pegasus/internal/pieces"
	"github.com/gopegasus/pegasus/internal/workcore"
)

const (
	// messageBytes is how much of several frames goes into one message.
	messageBytes = workcore.MaxFrame + 8
	// maxQueued is how many messages to one member may wait. A further frame is lost, and counted: the
	// machine sends again what matters.
	maxQueued = 64
	// quiet is the time between messages of calls that do not wait for others. Calls that follow each other sooner go together.
	quiet = clocksync.Instant(20 * time.Microsecond)
)

// piecesForm is the first byte of a message about pieces, among frames. No frame begins with it.
const piecesForm = 0xFF

// callsForm is the first byte of a message about calls, among frames. No frame begins with it.
const callsForm = 0xFE

// dataForm is the first byte of a message about data, among frames.
const dataForm = 0xFD

// sender sends frames. Those to one member that have come together go as one message. A frame that fits into no message
// is offered, and goes in pieces.
type sender struct {
	conn    link.Conn
	subject func(member string) string
	kick    chan struct{} // capacity 1

	publishing sync.Mutex // is held from the taking of a message to its end, so that messages stay in order

	mu      sync.Mutex
	queues  map[string][][]byte // messages by member; the last one may grow
	order   []string            // members that have some
	scratch []byte
	dropped uint64
	large   map[string]*pieces.Sender // by member
	first   uint64                    // number of offers
	called  clocksync.Instant         // when calls were added last
	direct  bool                      // who adds will publish
}

func newSender(conn link.Conn, subject func(string) string, began clocksync.Instant) *sender {
	return &sender{
		conn: conn, subject: subject, kick: make(chan struct{}, 1), queues: map[string][][]byte{}, large: map[string]*pieces.Sender{},
		first: uint64(max(0, began)), //nolint:gosec // It is not negative.
	}
}

// add puts a frame into the queue. It keeps nothing of it.
func (s *sender) add(now clocksync.Instant, f *workcore.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	large := s.large[f.To.Name]
	if large != nil && f.Step != nil { // A record is sent again until it is answered: a large one is not encoded each time.
		if offer, kept := large.Again(now, f.Key()); kept {
			s.addPieces(f.To.Name, []pieces.Message{offer})
			return
		}
	}
	if s.scratch = f.Append(s.scratch[:0]); len(s.scratch) <= workcore.MaxFrame {
		s.enqueue(f.To.Name)
		return
	}
	s.offer(now, f.To.Name, f.Key(), f.Answers())
}

// offer offers what is in scratch, which fits into no message.
func (s *sender) offer(now clocksync.Instant, to, key string, note uint64) {
	large := s.large[to]
	if large == nil {
		large = pieces.NewSender(s.first)
		s.large[to] = large
	}
	offer, ok := large.Offer(now, key, note, s.scratch)
	if s.scratch = nil; !ok {
		s.dropped++
		return
	}
	s.addPieces(to, []pieces.Message{offer})
}

// addCalls puts messages about calls into the queues. Those to one member that fit go as one message. If direct is set and nothing
// else has gone just now, the result is true: the caller has to call publish, without a lock, which saves the way to another goroutine.
func (s *sender) addCalls(now clocksync.Instant, list []callcore.Message, direct bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.direct = direct && len(s.order) == 0 && now-s.called >= quiet
	s.called = now
	defer func() { s.direct = false }()
	for i := range list {
		m := &list[i]
		if len(m.Body) > workcore.MaxFrame {
			if large := s.large[m.To.Name]; large != nil {
				if offer, kept := large.Again(now, m.Key()); kept {
					s.addPieces(m.To.Name, []pieces.Message{offer})
					continue
				}
			}
		}
		if s.scratch = m.Append(append(s.scratch[:0], callsForm)); len(s.scratch) <= workcore.MaxFrame {
			s.enqueue(m.To.Name)
			continue
		}
		s.offer(now, m.To.Name, m.Key(), 0)
	}
	return s.direct
}

// answerPieces answers a member that wants pieces.
func (s *sender) answerPieces(now clocksync.Instant, to string, want *pieces.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	large := s.large[to]
	if large == nil {
		large = pieces.NewSender(s.first)
	}
	s.addPieces(to, large.Answer(now, want))
}

// sendPieces puts messages about pieces into the queue.
func (s *sender) sendPieces(to string, list []pieces.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPieces(to, list)
}

func (s *sender) addPieces(to string, list []pieces.Message) {
	for i := range list {
		s.scratch = list[i].Append(append(s.scratch[:0], piecesForm))
		s.enqueue(to)
	}
}

// sendData puts messages about data into the queue.
func (s *sender) sendData(list []datacore.Send) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		s.scratch = list[i].Message.Append(append(s.scratch[:0], dataForm))
		s.enqueue(list[i].To.Name)
	}
}

// keepMembers forgets all frames for members that are not in the roster.
func (s *sender) keepMembers(roster map[workcore.Peer]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.large, func(to string, _ *pieces.Sender) bool { return !hasName(roster, to) })
}

// enqueue puts what is in scratch into the queue.
func (s *sender) enqueue(to string) {
	q := s.queues[to]
	if len(q) == 0 {
		s.order = append(s.order, to)
	}
	if n := len(q); n == 0 || len(q[n-1])+len(s.scratch)+binary.MaxVarintLen32 > messageBytes {
		if n >= maxQueued {
			s.dropped++
			return
		}
		q = append(q, nil)
	}
	last := &q[len(q)-1]
	*last = append(binary.AppendUvarint(*last, uint64(len(s.scratch))), s.scratch...)
	if s.queues[to] = q; !s.direct {
		s.wake()
	}
}

// wake has the loop publish.
func (s *sender) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// publishLoop publishes until ctx ends.
func (s *sender) publishLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		}
		s.publishing.Lock()
		s.publishAll()
		s.publishing.Unlock()
	}
}

// publishQueued publishes what is queued, or leaves it to the loop if another goroutine publishes now.
func (s *sender) publishQueued() {
	if !s.publishing.TryLock() {
		s.wake()
		return
	}
	defer s.publishing.Unlock()
	s.publishAll()
}

func (s *sender) publishAll() {
	for {
		to, message, ok := s.take()
		if !ok {
			return
		}
		_ = s.conn.Publish(s.subject(to), message) // What is lost while the server is away is sent again.
	}
}

func (s *sender) take() (to string, message []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return "", nil, false
	}
	to = s.order[0]
	q := s.queues[to]
	message = q[0]
	if q = q[1:]; len(q) == 0 {
		s.order = s.order[1:]
		delete(s.queues, to)
	} else {
		s.queues[to] = q
	}
	return to, message, true
}

var errFrame = errors.New("the message ends inside a frame")

// firstFrame is the first frame of a message, still encoded.
func firstFrame(data []byte) (frame, rest []byte, err error) {
	n, used := binary.Uvarint(data)
	if used <= 0 || n > uint64(len(data)-used) {
		return nil, nil, errFrame
	}
	return data[used : used+int(n)], data[used+int(n):], nil
}
