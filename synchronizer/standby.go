package synchronizer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/internal/bus"
	"github.com/gopegasus/pegasus/internal/telemetry"
)

const (
	// beatsGone is how long a leader is not heard before another process begins.
	beatsGone = time.Second
	// resignAfter is how far a leader may lag behind its messages while a warm standby could
	// take over.
	resignAfter = 5 * time.Second
	// maxStandbys bounds the standbys that are reported.
	maxStandbys = 8
	// serverSlow is the least time of a late answer of a server: the server may then have stood
	// still for so long that a leader would be missed. At least one question of a standby in
	// that time takes longer.
	serverSlow = beatsGone - 5*beatEvery/2
	// leaderLately is for how long after it was heard a leader is known to be the last one: nobody
	// can have begun after it, told members of a later term, and be gone.
	leaderLately = 3 * beatsGone
	// standbyPatience is how long a standby that is not warm keeps its place when another
	// standby finds none.
	standbyPatience = 2 * beatsGone
)

// beats are the beats of other processes.
type beats struct {
	mu       sync.Mutex
	leader   heardBeat // the greatest of late; its zero at means that none was heard
	standbys []heardBeat
}

type heardBeat struct {
	beat

	at    clocksync.Instant
	since clocksync.Instant // of a standby: when it was announced, or was last warm
}

// noteBeat keeps the beats of the leader and of the standbys. It returns the standby for which
// there is no place.
func (h *beats) noteBeat(b *beat, now clocksync.Instant) (out *beat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case b.Standby:
		return h.noteStandby(b, now)
	case h.leader.Nonce == b.Nonce || now.Sub(h.leader.at) > beatsGone || b.outranks(h.leader.Term, h.leader.Nonce):
		h.leader = heardBeat{beat: *b, at: now}
	}
	return nil
}

// noteStandby keeps a standby. The standby that has failed to become warm for longest gives its
// place to others.
func (h *beats) noteStandby(b *beat, now clocksync.Instant) (out *beat) {
	is := heardBeat{beat: *b, at: now, since: now}
	h.standbys = slices.DeleteFunc(h.standbys, func(o heardBeat) bool {
		if o.Nonce == b.Nonce && (b.Follows == nil || b.Follows.Attach == 0 || !b.Follows.Warm) {
			is.since = o.since
		}
		return o.Nonce == b.Nonce || now.Sub(o.at) > beatsGone
	})
	if b.Ends {
		return nil
	}
	if len(h.standbys) == maxStandbys {
		i := 0
		for k := range h.standbys {
			if h.standbys[k].since < h.standbys[i].since {
				i = k
			}
		}
		if now.Sub(h.standbys[i].since) < standbyPatience {
			return b
		}
		gone := h.standbys[i].beat
		out = &gone
		h.standbys = slices.Delete(h.standbys, i, i+1)
	}
	h.standbys = append(h.standbys, is)
	return out
}

// heardLately reports whether a leader was heard so lately that there is no later one.
func (h *beats) heardLately(now clocksync.Instant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader.Term > 0 && now.Sub(h.leader.at) <= leaderLately
}

// heard is when the leader was heard last; 0: never.
func (h *beats) heard() clocksync.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader.at
}

// knowsLeader reports whether a leader was ever heard.
func (h *beats) knowsLeader() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader.Term > 0
}

// wantedStreams are those that stand by and want to be told the leader's inputs.
func (h *beats) wantedStreams(now clocksync.Instant) []beat {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []beat
	for i := range h.standbys {
		if b := &h.standbys[i]; b.Follows != nil && b.Follows.Attach > 0 && now.Sub(b.at) <= beatsGone {
			list = append(list, b.beat)
		}
	}
	return list
}

// warm reports whether one stands by that is warm and not behind.
func (h *beats) warm(now clocksync.Instant) bool {
	return slices.ContainsFunc(h.wantedStreams(now), func(b beat) bool { return b.Follows.Warm && b.Follows.Why == "" && b.Follows.Behind == 0 })
}

// resignIfLate has this process end if it cannot keep up and another one stands by that has.
func (l *loop) resignIfLate(now clocksync.Instant) {
	if lag := now.Sub(l.oldest); l.oldest < now && lag > resignAfter && l.beats.warm(now) {
		l.lag = lag
	}
}

// lastStreamed is the number of the leader's last message with inputs, and who that is; 0 if
// none is known.
func (h *beats) lastStreamed() (number, nonce uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader.Stream, h.leader.Nonce
}

// vacant reports whether nobody leads: the last one has said that it ends, or was not heard
// since an instant from which on it would have been. Of several that stand by the one of the
// largest nonce is first, and before it those that are warm; each of the others leaves those before it
// the time to begin.
func (h *beats) vacant(since, now clocksync.Instant, own *beat) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	grace := time.Duration(0)
	for i := range h.standbys {
		if b := &h.standbys[i]; b.before(own) && now.Sub(b.at) <= beatsGone {
			grace += learnTime + 2*beatEvery
		}
	}
	quiet := now.Sub(since)
	if h.leader.Term > 0 {
		quiet = min(quiet, now.Sub(h.leader.at))
		if h.leader.Ends {
			return quiet >= grace
		}
	}
	return quiet >= beatsGone+grace
}

// leaderSince reports whether another process was heard to lead since an instant.
func (h *beats) leaderSince(since clocksync.Instant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leader.Term > 0 && h.leader.at > since && !h.leader.Ends
}

// listStandbys are the processes that stand by.
func (h *beats) listStandbys(now clocksync.Instant) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for i := range h.standbys {
		if b := &h.standbys[i]; now.Sub(b.at) <= beatsGone {
			list = append(list, b.String()+", "+b.Follows.String())
		}
	}
	slices.Sort(list)
	return list
}

// standsBy says who leads, as far as is known.
func (h *beats) standsBy(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leader.Term == 0 {
		return fmt.Errorf("synchronizer %q: %w, and no process is known to lead: start one, or wait", name, ErrStandby)
	}
	return fmt.Errorf("synchronizer %q: %w: %v leads in term %d", name, ErrStandby, &h.leader.beat, h.leader.Term)
}

// before reports whether a standby is to begin before another standby.
func (b *beat) before(other *beat) bool {
	if warm := b.Follows != nil && b.Follows.Warm; warm != other.Follows.Warm {
		return warm
	}
	return b.Nonce > other.Nonce
}

// caughtUp has the server hand over what came for this process: the beat of a leader may be
// behind its inputs, and these are to be stepped on. It is false if the server is away.
func (s *Synchronizer) caughtUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, beatsGone)
	defer cancel()
	err := s.bus.CatchUp(ctx)
	return err == nil || errors.Is(err, bus.ErrDrainTimeout) || s.bus.State() == bus.Connected && errors.Is(err, context.DeadlineExceeded)
}

// grace is how long a leader must be heard after a server has answered late: a leader that
// stood still hands over its state before it has read what the new leader said meanwhile.
type grace struct {
	since clocksync.Instant // when the leader was heard last before it
	until clocksync.Instant
}

// answered asks the server whether it runs.
func (s *Synchronizer) answered(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, beatsGone)
	defer cancel()
	return s.bus.Flush(ctx) == nil
}

// note notes how long an answer took while the leader was not heard since an instant. It gives a
// leader time once in each silence, so that a server that is slow for long keeps nobody from beginning.
func (g *grace) note(now, heard clocksync.Instant, took time.Duration) {
	if took > serverSlow && now.Sub(heard) >= beatsGone/2 && g.since != heard {
		g.since, g.until = heard, now.Add(2*beatEvery)
	}
}

// standBy waits until nobody leads, and begins then. It reports false if this process is to
// end before.
func (s *Synchronizer) standBy(ctx context.Context) bool {
	s.opt.Logger.Info("stands by until the process that leads has ended")
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	since := s.opt.now()
	var grace grace
	for last := since; ; {
		select {
		case <-ctx.Done():
			s.publishBeat(s.ownBeat(true).text())
			return false
		case <-tick.C:
		}
		now := s.opt.now()
		if s.bus.State() != bus.Connected || now.Sub(last) >= pauseLimit {
			since = now // Until now nobody could be heard.
		}
		last = now
		own := s.ownBeat(false)
		own.Follows = s.follow.makeBeat(now)
		s.publishBeat(own.text())
		if !s.answered(ctx) {
			since = s.opt.now() // Nobody could be heard.
			continue
		}
		asked := now
		now = s.opt.now()
		grace.note(now, s.beats.heard(), now.Sub(asked))
		if now < grace.until || !s.beats.vacant(since, now, own) || !s.caughtUp(ctx) || !s.beats.vacant(since, s.opt.now(), own) {
			continue
		}
		if s.level.Program != nil && s.beats.knowsLeader() && !s.follow.isCaughtUp() {
			s.mu.Lock()
			s.err = fmt.Errorf("synchronizer %q: no process leads any more, and this process never received the program's progress: resume the journal of the former leader (Options.Resume, --resume), or start the program again", s.name)
			s.mu.Unlock()
			return false
		}
		err := s.beginLeading(ctx, nil)
		switch {
		case err == nil:
			return true
		case errors.Is(err, bus.ErrClosed):
			s.mu.Lock()
			s.err = fmt.Errorf("synchronizer %q: %w", s.name, err)
			s.mu.Unlock()
			return false
		}
		s.opt.Logger.Warn("nobody is heard to lead, and this process cannot; it stands by", telemetry.ClassKey, "standby", "cause", err)
		since = s.opt.now()
	}
}
