package detectcmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/gopegasus/pegasus/internal/show"
	"github.com/gopegasus/pegasus/internal/tracedetect"
	"github.com/gopegasus/pegasus/internal/tracefile"
)

// outputBuffer is what is gathered before it is written.
const outputBuffer = 64 << 10

// detection is one run of detect.
type detection struct {
	flags          *detectFlags
	options        tracedetect.Options
	stdout, stderr io.Writer

	in      *input
	out     *bufio.Writer
	core    *tracedetect.Core
	line    []byte   // of output
	picture *picture // nil without --svg
	skipped uint64
	first   error // why the first line was skipped
}

func (d *detection) run(ctx context.Context, file string, stdin io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // Ends the goroutine that reads.
	if err := d.open(ctx, file, stdin); err != nil {
		return d.flags.fail(err)
	}
	defer d.in.close()
	d.out = bufio.NewWriterSize(d.stdout, outputBuffer)
	write := d.writer()
	if d.flags.svg != "" {
		d.picture = newPicture(&d.options)
		d.options.Note = d.picture.note
		line := write
		write = func(s *tracedetect.State) {
			line(s)
			d.picture.addFound(s)
		}
	}
	core, err := tracedetect.New(d.options, write)
	if err != nil { // With too many members for the condition.
		return d.flags.fail(fmt.Errorf("--%w", err))
	}
	d.core = core
	err = core.Read(&prompt{d.in, d.out}, d.fault)
	if err == nil {
		core.Finish()
	} else {
		core.Flush() // What was certain before.
	}
	if broken := d.out.Flush(); broken != nil {
		err = broken
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil // The reader of the output has had enough.
	}
	d.tell()
	if d.picture != nil {
		if broken := os.WriteFile(d.flags.svg, []byte(d.picture.svg(d.in.name)), 0o600); broken != nil {
			err = errors.Join(err, fmt.Errorf("--svg: %w: give the path of a file that can be written", broken))
		}
	}
	return d.flags.fail(err)
}

func (d *detection) open(ctx context.Context, file string, stdin io.Reader) (err error) {
	if d.flags.membersGiven {
		d.in, err = open(ctx, file, stdin)
		return err
	}
	d.in, d.options.Participants, err = openTwice(ctx, file, stdin, d.flags.lenient)
	return err
}

// writer returns what writes a state. Flush returns the error of writing.
func (d *detection) writer() func(*tracedetect.State) {
	render := tracedetect.NewJSON(&d.options).Append
	if d.flags.format == "text" {
		render = tracedetect.NewText(&d.options, show.Printable).Append
	}
	return func(s *tracedetect.State) {
		d.line = render(d.line[:0], s)
		_, _ = d.out.Write(d.line)
	}
}

// fault says where a line is wrong, or skips it. What is no fault of the line
// alone is not skipped.
func (d *detection) fault(line int, err error) error {
	refused, ok := errors.AsType[*tracefile.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("%s:%d: --%w", d.in.name, line, err)
	case refused.Column > 0:
		err = fmt.Errorf("%s:%d:%w", d.in.name, line, err)
	default:
		err = fmt.Errorf("%s:%d: %w", d.in.name, line, err)
	}
	if !d.flags.lenient {
		return err
	}
	if d.skipped++; d.skipped == 1 {
		d.first = err
	}
	return nil
}

// tell writes the summary, and that lines were skipped.
func (d *detection) tell() {
	if d.skipped > 0 {
		_, _ = fmt.Fprintf(d.stderr, "pegasus: %s skipped, the first of them: %v\n", show.Count(d.skipped, "line"), d.first)
	}
	if missing := d.core.Missing(); len(missing) > 0 && d.core.Stats().States > 0 {
		_, _ = fmt.Fprintf(d.stderr, "pegasus: no state has a field %s, which the condition reads\n", strings.Join(missing, ", "))
	}
	for _, field := range d.core.Rounded() {
		exact := "int"
		if i := d.options.Schema.Index(field); i >= 0 && d.options.Schema[i].Type.IsList() {
			exact = "list(int)"
		}
		_, _ = fmt.Fprintf(d.stderr, "pegasus: field %s has whole numbers that a float does not hold exactly, and is unknown there: use --schema %s:%s\n", field, field, exact)
	}
	if absent := d.core.Absent(); len(absent) > 0 && d.flags.membersGiven && d.core.Stats().States > 0 {
		_, _ = fmt.Fprintf(d.stderr, "pegasus: the trace has no line of %s, which --members names\n", strings.Join(absent, ", "))
	}
	if d.flags.stats {
		stats := d.core.Stats()
		_, _ = io.WriteString(d.stderr, stats.Summary(d.skipped))
	}
}

// prompt writes out what is certain before it waits for more.
type prompt struct {
	r io.Reader
	w *bufio.Writer
}

func (p *prompt) Read(b []byte) (int, error) {
	if err := p.w.Flush(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}
