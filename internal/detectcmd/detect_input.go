package detectcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gopegasus/pegasus/internal/tracedetect"
)

// input is an opened trace.
type input struct {
	io.Reader
	name  string // for messages
	close func()
}

// open opens a trace that is read once.
func open(ctx context.Context, file string, stdin io.Reader) (*input, error) {
	if file == "-" {
		return &input{ReadUntil(ctx, stdin), "stdin", func() {}}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("trace: %w: give the path of a trace, or - for standard input", err)
	}
	return &input{ReadUntil(ctx, f), file, func() { _ = f.Close() }}, nil
}

// openTwice opens a trace after it was read for its participants. What cannot be
// read twice is kept in a temporary file.
func openTwice(ctx context.Context, file string, stdin io.Reader, lenient bool) (*input, []tracedetect.Participant, error) {
	in, err := open(ctx, file, stdin)
	if err != nil {
		return nil, nil, err
	}
	defer in.close()
	if info, err := os.Stat(file); file != "-" && err == nil && info.Mode().IsRegular() {
		found, err := tracedetect.Participants(in, lenient)
		if err != nil {
			return nil, nil, err
		}
		in, err := open(ctx, file, stdin)
		return in, found, err
	}
	kept, remove, err := temporary()
	if err != nil {
		return nil, nil, err
	}
	found, err := tracedetect.Participants(io.TeeReader(in, kept), lenient)
	if err == nil {
		_, err = kept.Seek(0, io.SeekStart)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return &input{ReadUntil(ctx, kept), in.name, remove}, found, nil
}

// temporary makes a file and returns what removes it. Where the system allows
// that it has no name any more, so that nothing is left whatever happens.
func temporary() (*os.File, func(), error) {
	f, err := os.CreateTemp("", "pegasus-trace-*")
	if err != nil {
		return nil, nil, fmt.Errorf("trace: keep standard input, to read it twice (--members reads it once): %w", err)
	}
	unnamed := os.Remove(f.Name()) == nil
	return f, func() {
		_ = f.Close()
		if !unnamed {
			_ = os.Remove(f.Name())
		}
	}, nil
}

// ReadUntil returns a reader of r that fails when the context ends, also while a read of r blocks. Its goroutine then ends with
// that read.
func ReadUntil(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return &checked{ctx, r}
		}
	}
	pieces, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(errInterrupted) })
	go func() {
		_, err := io.Copy(w, r)
		_ = w.CloseWithError(err)
	}()
	return pieces
}

// errInterrupted ends what a signal ends.
var errInterrupted = errors.New("interrupted: the input was not read to its end")

// checked reads what never blocks for long.
type checked struct {
	ctx context.Context
	r   io.Reader
}

func (c *checked) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, errInterrupted
	}
	return c.r.Read(p)
}
