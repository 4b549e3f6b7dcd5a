package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/gopegasus/pegasus/clocksync"
	"github.com/gopegasus/pegasus/control"
	"github.com/gopegasus/pegasus/internal/configfile"
	"github.com/gopegasus/pegasus/internal/plan"
	"github.com/gopegasus/pegasus/internal/synccore"
	"github.com/gopegasus/pegasus/internal/wire"
	"github.com/gopegasus/pegasus/scgs"
)

// Record is one line of a journal after the first.
type Record struct {
	Now   clocksync.Instant // of the step
	Input synccore.Input    // its pointers hold until the record is read again, which overwrites its Batch
	// Out is the digest of all outputs up to the output of this input. Broken: there is none,
	// since the step did not end.
	Out    uint64
	Broken bool // by the end of the process, or a fault
}

// Reader reads a journal. What it refuses it refuses with the number of the line.
type Reader struct {
	Header Header      // the first line
	Level  *plan.Level // compiled from the header's configuration

	// How it ended; known when Next has returned io.EOF.
	Inputs  uint64
	Ended   bool   // by a last line that says so, else the process was ended
	Stopped string // why the rest of the run is not in it
	Cut     bool   // the last line was written in part, and is left out

	r     *bufio.Reader
	long  []byte // of a line that the reader's buffer does not hold
	line  int
	read  int64 // bytes so far
	good  int64 // of these, up to the end of the last input
	now   clocksync.Instant
	term  uint64
	codec *wire.BatchCodec
	frame []byte // scratch
	quick quickLine
}

// Read reads the first line and compiles the configuration in it.
func Read(r io.Reader) (*Reader, error) {
	j := &Reader{r: bufio.NewReaderSize(r, 256<<10), now: clocksync.MinInstant}
	text, err := j.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the journal is empty, or its first line was not written to the end: nothing can be replayed")
	}
	if err != nil {
		return nil, err
	}
	if err := j.header(text); err != nil {
		return nil, j.fault(err)
	}
	return j, nil
}

func (j *Reader) header(text []byte) error {
	h := &j.Header
	var format struct {
		Journal *int `json:"journal"`
	}
	if err := json.Unmarshal(text, &format); err != nil || format.Journal == nil {
		return errors.New("the first line is no header of a journal, as run --journal writes it")
	}
	if *format.Journal != Format {
		return fmt.Errorf("its format is %d, and this version of pegasus reads %d: use the version that wrote it", *format.Journal, Format)
	}
	if err := strict(text, h); err != nil {
		return err
	}
	if err := followed(h.Term); err != nil {
		return err
	}
	if hash := h.Config.Hash(); h.Hash != hash {
		return fmt.Errorf("the hash of its configuration is %s, and %q stands there: the text was changed", hash, h.Hash)
	}
	plan, err := configfile.Recompile(&h.Config, h.Synchronizer)
	if err != nil {
		return err
	}
	if plan.Members.Threads {
		return fmt.Errorf("%q is a thread-level synchronizer, of which there are no journals", plan.Name)
	}
	j.Level, j.codec, j.term, j.good = plan, wire.NewBatchCodec(plan.State), h.Term, j.read
	return nil
}

// followed refuses a term that no later life can follow.
func followed(term uint64) error {
	if term >= control.MaxTerm-1 {
		return fmt.Errorf("no term that members accept can follow term %d", term)
	}
	return nil
}

// follows takes the next term of the journal.
func (j *Reader) follows(what string, term uint64) error {
	if term <= j.term {
		return fmt.Errorf("%s: term %d does not follow term %d", what, term, j.term)
	}
	j.term = term
	return followed(term)
}

// Term is the term that the journal has come to.
func (j *Reader) Term() uint64 { return j.term }

// Line is the number of the line that was read last, from 1.
func (j *Reader) Line() int { return j.line }

// Next reads the next input into rec, whose pointers hold until the next call with the same rec.
// After the last one it returns io.EOF.
func (j *Reader) Next(rec *Record) error {
	if j.Ended {
		return io.EOF
	}
	text, err := j.next()
	if err != nil {
		return err
	}
	return j.Take(text, rec)
}

// Follow returns a reader of the lines of a machine of a level, which come one by one
// by [Reader.Take].
func Follow(level *plan.Level) *Reader {
	j := &Reader{Level: level, codec: wire.NewBatchCodec(level.State), now: clocksync.MinInstant}
	j.Header.Synchronizer = level.Name
	return j
}

// Take reads one line, without its end, like Next.
func (j *Reader) Take(text []byte, rec *Record) error {
	l, err := j.decode(text)
	if err == nil && l.End != nil {
		if err = j.end(l); err == nil {
			return io.EOF
		}
	}
	if err == nil {
		err = j.input(l, rec)
	}
	if err != nil {
		return j.fault(err)
	}
	j.Inputs++
	j.good = j.read
	return nil
}

// decode returns a line that holds until the next call. A quick decoder reads most lines; the result is the same.
func (j *Reader) decode(text []byte) (*journalLine, error) {
	if l := j.quick.decode(text); l != nil {
		return l, nil
	}
	l := &journalLine{}
	return l, strict(text, l)
}

// Good is the number of bytes up to the end of the last input that was read: more
// inputs can be written there.
func (j *Reader) Good() int64 { return j.good }

func (j *Reader) fault(err error) error { return fmt.Errorf("line %d: %w", j.line, err) }

// next returns the next whole line without its end.
func (j *Reader) next() ([]byte, error) {
	j.line++
	j.long = j.long[:0]
	for {
		part, err := j.r.ReadSlice('\n')
		j.read += int64(len(part))
		switch {
		case err == nil && len(j.long) == 0:
			return part[:len(part)-1], nil
		case len(j.long)+len(part) > MaxLine:
			return nil, j.fault(fmt.Errorf("the line is longer than %d bytes", MaxLine))
		}
		j.long = append(j.long, part...)
		switch {
		case err == nil:
			return j.long[:len(j.long)-1], nil
		case errors.Is(err, io.EOF):
			j.Cut = len(j.long) > 0
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (j *Reader) end(l *journalLine) error {
	switch {
	case j.r == nil:
		return errors.New("the line is the end of a file, and these lines come one by one")
	case l.kinds() > 0:
		return errors.New("the line has both an input and the end")
	}
	if *l.End != j.Inputs {
		return fmt.Errorf("the last line counts %d inputs before it, and the journal has %d: lines are missing", *l.End, j.Inputs)
	}
	j.Ended, j.Stopped = true, l.Stopped
	if _, err := j.r.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("more lines follow the last line of the journal")
	}
	return nil
}

// journalLine is what a line can have.
type journalLine struct {
	Now  *clocksync.Instant `json:"now"`
	More bool               `json:"more"`
	From string             `json:"from"`
	// Group is the group of From, if it is another one.
	Group  string `json:"group"`
	By     string `json:"by"`     // the multiplexer that has brought it
	Person string `json:"person"` // the user that has asked for a config
	// Reached is the input's, 0 if it is no news.
	Reached clocksync.Instant `json:"reached"`

	Tick     bool                `json:"tick"`
	Watched  bool                `json:"watched"`
	Hello    *helloLine          `json:"hello"`
	Batch    *batchLine          `json:"batch"`
	Alive    *[]aliveLine        `json:"alive"`
	Shared   *sharedLine         `json:"shared"`
	Gone     *wire.Gone          `json:"gone"`
	Ack      *wire.Ack           `json:"ack"`
	Timeline *clocksync.Timeline `json:"timeline"`
	Config   *plan.Source        `json:"config"`
	Body     *plan.Body          `json:"body"`
	Cancel   *string             `json:"cancel"`
	Restart  *synccore.Options   `json:"restart"`
	Term     *uint64             `json:"term"`
	Kept     *synccore.Kept      `json:"kept"`
	Program  *synccore.Record    `json:"program"`

	Out     *string `json:"out"`
	End     *uint64 `json:"end"`
	Stopped string  `json:"stopped"`
}

type batchLine struct {
	Member      string             `json:"member"`
	Incarnation uint64             `json:"incarnation"`
	Domain      clocksync.Domain   `json:"domain"`
	Again       bool               `json:"again"`
	Leaving     bool               `json:"leaving"`
	Reports     []reportLine       `json:"reports"`
	Regions     []wire.Region      `json:"regions"`
	Evidence    *evidenceLine      `json:"evidence"`
	Quality     *clocksync.Quality `json:"quality"`
}

type reportLine struct {
	Seq   uint64               `json:"seq"`
	At    []*clocksync.Instant `json:"at"`
	End   bool                 `json:"end"`
	State []json.RawMessage    `json:"state"`
}

type aliveLine struct {
	Member      string               `json:"member"`
	Incarnation uint64               `json:"incarnation"`
	Seq         uint64               `json:"seq"`
	At          []*clocksync.Instant `json:"at"`
}

type sharedLine struct {
	Version uint64        `json:"version"`
	Total   uint64        `json:"total"`
	First   uint64        `json:"first"`
	Listed  []wire.Listed `json:"listed"`

	Of  uint64               `json:"of"`
	Sum uint64               `json:"sum"`
	At  []*clocksync.Instant `json:"at"`
}

type evidenceLine struct {
	Seq uint64               `json:"seq"`
	At  []*clocksync.Instant `json:"at"`
}

// kinds counts the inputs that the line has.
func (l *journalLine) kinds() int {
	n := 0
	for _, there := range []bool{l.Tick, l.Hello != nil, l.Batch != nil, l.Alive != nil, l.Shared != nil, l.Gone != nil, l.Ack != nil, l.Timeline != nil, l.Config != nil, l.Body != nil, l.Cancel != nil, l.Restart != nil, l.Term != nil, l.Kept != nil, l.Program != nil} {
		if there {
			n++
		}
	}
	return n
}

// input takes what a line says for an input. What could not have come as a message
// is refused here, so that the machine need not look.
func (j *Reader) input(l *journalLine, rec *Record) error {
	switch {
	case l.kinds() != 1:
		return errors.New("a line needs one of tick, hello, batch, alive, shared, gone, ack, timeline, config, body, cancel, restart, term, kept, end")
	case l.Now == nil || !l.Now.Finite():
		return errors.New("now is missing: the instant of the input in ns")
	case *l.Now < j.now && l.Restart == nil: // Which may be on another clock.
		return fmt.Errorf("now goes back from %v to %v", j.now, *l.Now)
	case l.Reached != 0 && !l.Reached.Finite():
		return errors.New("reached is the instant of a round trip in ns")
	case l.Stopped != "":
		return errors.New("stopped belongs to the end")
	case l.Watched && !l.Tick:
		return errors.New("watched belongs to tick")
	}
	j.now = *l.Now
	batch := rec.Input.Batch
	*rec = Record{Now: *l.Now, Input: synccore.Input{From: l.From, Group: l.Group, By: l.By, Reached: l.Reached, More: l.More}, Broken: l.Out == nil}
	if l.Out != nil {
		var err error
		if rec.Out, err = parseDigest(*l.Out); err != nil {
			return fmt.Errorf("out: %w", err)
		}
	}
	if message := l.Hello != nil || l.Batch != nil || l.Alive != nil || l.Shared != nil || l.Gone != nil || l.Ack != nil || l.Body != nil; message {
		if err := wire.CheckSender("from", l.From); err != nil {
			return err
		}
	} else if l.From != "" {
		return errors.New("from belongs to what a member has sent")
	}
	if l.By != "" {
		if l.Hello == nil && l.Batch == nil && l.Gone == nil && l.Ack == nil {
			return errors.New("by belongs to hello, batch, gone and ack")
		}
		if err := wire.CheckSender("by", l.By); err != nil {
			return err
		}
	}
	if l.Person != "" {
		if l.Config == nil {
			return errors.New("person belongs to config")
		}
		if err := wire.CheckToken("person", l.Person); err != nil {
			return err
		}
	}
	if err := l.otherGroup(); err != nil {
		return err
	}
	return j.content(l, &rec.Input, batch)
}

// otherGroup checks that an input from another group is of a kind heard from other groups.
func (l *journalLine) otherGroup() error {
	if l.Group == "" {
		return nil
	}
	if err := wire.CheckToken("group", l.Group); err != nil {
		return err
	}
	b := l.Batch
	switch {
	case l.Hello == nil && b == nil && l.Ack == nil && l.Shared == nil:
		return errors.New("group belongs to hello, batch, shared and ack")
	case b != nil && (len(b.Reports) > 0 || b.Evidence != nil || b.Quality != nil):
		return errors.New("batch: of another group's members there are no reports, evidence and quality")
	}
	return nil
}

func (j *Reader) content(l *journalLine, in *synccore.Input, batch *wire.Batch) (err error) {
	switch {
	case l.Tick:
		in.Kind, in.Watched = synccore.InTick, l.Watched
	case l.Hello != nil:
		in.Kind, in.Hello = synccore.InHello, l.Hello.message()
		j.frame, err = wire.AppendHello(j.frame[:0], in.Hello)
	case l.Batch != nil:
		if batch == nil {
			batch = &wire.Batch{}
		}
		in.Kind, in.Batch = synccore.InBatch, batch
		err = j.readBatch(l.Batch, batch)
	case l.Alive != nil:
		in.Kind = synccore.InAlive
		in.Alive, err = j.readAlive(*l.Alive)
	case l.Shared != nil:
		in.Kind, in.Shared = synccore.InShared, &wire.Bundle{}
		err = j.readShared(l.Shared, in.Shared)
	case l.Gone != nil:
		in.Kind, in.Gone = synccore.InGone, l.Gone
		j.frame, err = wire.AppendGone(j.frame[:0], in.Gone)
	case l.Ack != nil:
		var n int
		in.Kind, in.Ack = synccore.InAck, l.Ack
		if j.frame, n, err = wire.AppendAck(j.frame[:0], in.Ack); err == nil && n < len(in.Ack.Answers) {
			err = errors.New("ack: it does not fit a message")
		}
	case l.Timeline != nil:
		in.Kind, in.Timeline = synccore.InTimeline, *l.Timeline
	case l.Config != nil:
		in.Kind, in.Person = synccore.InLevel, l.Person
		in.Level, err = configfile.Recompile(l.Config, j.Header.Synchronizer)
	case l.Body != nil:
		in.Kind, in.Body = synccore.InBody, l.Body
		if len(l.Body.Text) > wire.MaxBody || l.Body.Kind != wire.BodyResult && l.Body.Kind != wire.BodyFailure {
			err = errors.New("body: it does not fit a message")
		}
	case l.Cancel != nil:
		in.Kind, in.Reason = synccore.InCancel, *l.Cancel
	case l.Restart != nil:
		in.Kind, in.Restart = synccore.InRestart, l.Restart
		if l.Restart.Follows { // The inputs of another machine, of any term, are retold.
			j.term = l.Restart.Term
			return followed(j.term)
		}
		err = j.follows("restart", l.Restart.Term)
	case l.Term != nil:
		in.Kind, in.Term = synccore.InTerm, *l.Term
		err = j.follows("term", *l.Term)
	case l.Kept != nil:
		in.Kind, in.Kept = synccore.InKept, l.Kept
	case l.Program != nil:
		in.Kind, in.Record = synccore.InProgram, l.Program
	}
	return err
}

func (l *helloLine) message() *wire.Hello {
	h := &wire.Hello{
		Member: l.Member, Incarnation: l.Incarnation, Host: l.Host, Domain: l.Domain, Quality: l.Quality,
		Typed: l.Typed, Threads: l.Threads, Multiplexer: l.Multiplexer, Leader: l.Leader, Term: l.Term,
		Causes: l.Causes, Life: l.Life, Fates: l.Fates, Same: l.Same, Process: l.Process, Asks: l.Asks, Had: l.Had, Over: l.Over, Common: l.Common,
	}
	for _, f := range l.Schema {
		h.Schema = append(h.Schema, scgs.Field(f))
	}
	return h
}

func (j *Reader) readBatch(l *batchLine, b *wire.Batch) error {
	*b = wire.Batch{
		Member: l.Member, Incarnation: l.Incarnation, Schema: j.codec.Hash(), Again: l.Again, Leaving: l.Leaving,
		Reports: b.Reports[:0], Regions: append(b.Regions[:0], l.Regions...),
	}
	for i := range l.Reports {
		r, err := j.readReport(&l.Reports[i], l.Domain)
		if err != nil {
			return fmt.Errorf("batch: report %d: %w", i+1, err)
		}
		b.Reports = append(b.Reports, r)
	}
	if e := l.Evidence; e != nil {
		at, err := stamp(e.At, l.Domain)
		if err != nil {
			return fmt.Errorf("batch: evidence: %w", err)
		}
		b.Evidence = wire.Evidence{Seq: e.Seq, At: at}
	}
	if l.Quality != nil {
		b.Tagged, b.Quality = true, *l.Quality
	}
	var n int
	var err error
	if j.frame, n, err = j.codec.Append(j.frame[:0], b); err == nil && n < len(b.Reports) {
		err = errors.New("batch: it does not fit a message")
	}
	return err
}

func (j *Reader) readAlive(lines []aliveLine) ([]wire.Alive, error) {
	b := wire.Bundle{}
	for i, l := range lines {
		at, err := stamp(l.At, "")
		if err != nil {
			return nil, fmt.Errorf("alive: %d: %w", i+1, err)
		}
		b.Alive = append(b.Alive, wire.Alive{Member: l.Member, Incarnation: l.Incarnation, Evidence: wire.Evidence{Seq: l.Seq, At: at}})
	}
	frame, rest, err := wire.AppendBundle(j.frame[:0], &b)
	j.frame = frame
	if err == nil && !rest.Empty() {
		err = errors.New("alive: it does not fit a message")
	}
	return b.Alive, err
}

func (j *Reader) readShared(l *sharedLine, b *wire.Bundle) error {
	b.Roster = wire.Roster{Version: l.Version, Total: l.Total, First: l.First, Listed: l.Listed}
	if l.Of > 0 {
		at, err := stamp(l.At, "")
		if err != nil {
			return fmt.Errorf("shared: %w", err)
		}
		b.Held = wire.Held{Of: l.Of, Sum: l.Sum, At: at}
	}
	frame, rest, err := wire.AppendBundle(j.frame[:0], b)
	j.frame = frame
	if err == nil && (b.Empty() || !rest.Empty() || l.First+uint64(len(l.Listed)) > l.Total) {
		err = errors.New("shared: it does not fit a message")
	}
	return err
}

func (j *Reader) readReport(l *reportLine, domain clocksync.Domain) (wire.Report, error) {
	r := wire.Report{Seq: l.Seq, End: l.End}
	var err error
	if r.At, err = stamp(l.At, domain); err != nil {
		return r, err
	}
	schema := j.Level.State
	switch {
	case l.End && len(l.State) > 0:
		return r, errors.New("an end has no state")
	case l.End:
		return r, nil
	case len(l.State) != len(schema):
		return r, fmt.Errorf("%d values for %d fields", len(l.State), len(schema))
	}
	r.Row = make([]scgs.Value, len(schema))
	for i, text := range l.State {
		switch {
		case string(text) == "null":
			continue
		case schema[i].Type == scgs.Enum: // It has few words.
			j.quick.text = text
			if word, ok := j.quick.plain(); ok && len(j.quick.text) == 0 {
				r.Row[i] = scgs.EnumValue(j.quick.keep(word))
				continue
			}
		}
		if r.Row[i], err = schema[i].Type.ReadJSON(text); err != nil {
			return r, fmt.Errorf("field %q: %w", schema[i].Name, err)
		}
	}
	return r, nil
}

// stamp reads [MONO] or [MONO, EARLIEST, LATEST].
func stamp(list []*clocksync.Instant, domain clocksync.Domain) (clocksync.Stamp, error) {
	s := clocksync.Stamp{Domain: domain, Within: clocksync.Unbounded}
	if len(list) != 1 && len(list) != 3 || list[0] == nil {
		return s, errors.New("at is a reading, or a reading, the earliest and the latest time")
	}
	s.Mono = *list[0]
	if len(list) == 1 {
		return s, nil
	}
	if list[1] != nil {
		s.Within.Earliest = *list[1]
	}
	if list[2] != nil {
		s.Within.Latest = *list[2]
	}
	return s, nil
}

// strict decodes one JSON object that has no unknown keys.
func strict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("the text is no line of a journal: %w", err)
	}
	if d.InputOffset() < int64(len(bytes.TrimRight(text, " \t\r"))) {
		return errors.New("the text is no line of a journal: more follows the object")
	}
	return nil
}
