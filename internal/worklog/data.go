package worklog

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// PartBytes is how many bytes each part of data has, but the last one. All writers of a stream have the same.
const PartBytes = 48 << 10

// headBytes stand before the bytes of the first part: the digest of the data, and their size.
const headBytes = sha256.Size + 8

// ErrDamaged says that a message of a stream cannot be a part of data.
var ErrDamaged = errors.New("no part of data")

// Data is what the stream has under a name.
type Data struct {
	Size   int               // in bytes
	Digest [sha256.Size]byte // of the bytes
}

// parts is of how many messages data are: at least one.
func (d *Data) parts() int { return max(1, (d.Size+PartBytes-1)/PartBytes) }

// dataSubject is the subject of a part of data. Each part has a subject of its own, so the first message of a part counts.
func dataSubject(phase uint64, name string, part int) string {
	return fmt.Sprintf("d.%d.%s.%d", phase, base64.RawURLEncoding.EncodeToString([]byte(name)), part)
}

// WriteData writes data of a phase. Several writers may write the same data at the same time, and a writer may complete what
// another one has begun. It refuses other data than the first writer's. Until ctx ends it waits for a stream that takes nothing.
func (l *Log) WriteData(ctx context.Context, phase uint64, name string, data []byte, digest [sha256.Size]byte) error {
	want := Data{len(data), digest}
	if have, whole, err := l.FindData(ctx, phase, name); err != nil || whole && have == want {
		return err
	}
	for i := range want.parts() {
		body := data[i*PartBytes : min((i+1)*PartBytes, len(data))]
		if i == 0 {
			head := binary.BigEndian.AppendUint64(digest[:], uint64(len(data)))
			body = append(head, body...)
		}
		_, err := l.Append(ctx, dataSubject(phase, name, i), 0, body, nil)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrFenced) {
			return err
		}
		have, _, err := l.FindData(ctx, phase, name)
		switch {
		case err != nil:
			return err
		case have != want:
			return fmt.Errorf("data %q: they are written already, with the digest %x, and now with %x: give other bytes another name", name, have.Digest[:8], digest[:8])
		}
		return fmt.Errorf("data %q: part %d of them has other bytes in the stream %s: give them another name", name, i, l.settings.Stream)
	}
	return nil
}

// FindData returns what the stream has under a name; whole: its last part is there. Without any it returns the zero Data.
func (l *Log) FindData(ctx context.Context, phase uint64, name string) (d Data, whole bool, err error) {
	seq, body, err := l.Last(ctx, dataSubject(phase, name, 0))
	if err != nil || seq == 0 {
		return d, false, err
	}
	if len(body) < headBytes {
		return d, false, fmt.Errorf("work: stream %s: message %d: %w %q: remove the message, and write the data again", l.settings.Stream, seq, ErrDamaged, name)
	}
	d.Digest = [sha256.Size]byte(body)
	d.Size = int(binary.BigEndian.Uint64(body[sha256.Size:])) //nolint:gosec // Data that are too large have no last part.
	if d.parts() > 1 {
		seq, _, err = l.Last(ctx, dataSubject(phase, name, d.parts()-1))
	}
	return d, seq > 0, err
}

// ReadPart returns a part of data; false: it is not there.
func (l *Log) ReadPart(ctx context.Context, phase uint64, name string, part int) (body []byte, found bool, err error) {
	seq, body, err := l.Last(ctx, dataSubject(phase, name, part))
	if err != nil || seq == 0 || part > 0 {
		return body, seq > 0, err
	}
	return body[min(headBytes, len(body)):], true, nil
}

// ListData lists the names of data of a phase of which the first part is there, sorted.
func (l *Log) ListData(ctx context.Context, phase uint64) (names []string, err error) {
	subjects, _, err := l.Subjects(ctx, fmt.Sprintf("d.%d.*.0", phase))
	if err != nil {
		return nil, err
	}
	for _, s := range subjects {
		if name, err := base64.RawURLEncoding.DecodeString(strings.Split(s, ".")[2]); err == nil {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// RemoveData removes the data of all phases before one.
func (l *Log) RemoveData(ctx context.Context, before uint64) error {
	subjects, _, err := l.Subjects(ctx, "d.*.*.0")
	if err != nil {
		return err
	}
	phases := map[uint64]bool{}
	for _, s := range subjects {
		if phase, err := strconv.ParseUint(strings.Split(s, ".")[1], 10, 64); err == nil && phase < before {
			phases[phase] = true
		}
	}
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		err := l.askServer(ctx, func(ctx context.Context) error {
			return l.stream.Purge(ctx, jetstream.WithPurgeSubject(l.subjectOf(fmt.Sprintf("d.%d.>", phase))))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
