package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"

	"github.com/gopegasus/pegasus/agent"
	"github.com/gopegasus/pegasus/examples/nodes"
)

// ticket is what goes from block to block: references to files.
type ticket struct {
	Image  int      `json:"image"`
	File   string   `json:"file,omitempty"`   // of the image, or of a strip of it
	Stored []string `json:"stored,omitempty"` // the images that are done
}

// told is what a block tells of the strip that it has looked at.
type told struct {
	Images                int
	Noise, Middle, Shades float64
}

// node is a process that runs the blocks until its standard input is closed. Its files
// are in a directory that all nodes share.
func node(url, name, dir string) error {
	n, err := agent.JoinNode(context.Background(), url, agent.NodeConfig{Group: "lookers", Name: name},
		agent.Block("load", func(_ context.Context, _ *agent.Run, t ticket) (ticket, error) {
			t.Image++
			t.File = filepath.Join(dir, fmt.Sprintf("%d.png", t.Image))
			return t, write(t.File, paint(t.Image))
		}),
		agent.Block("look", func(_ context.Context, r *agent.Run, t ticket) (any, error) {
			m, err := read(t.File)
			if err != nil {
				return nil, err
			}
			s := look(m, strip(r.Replicas()[0]))
			return nil, r.Set(told{len(scenes) - 1 - t.Image, s.Noise, s.Middle, s.Shades})
		}),
		agent.Block("smooth", func(_ context.Context, r *agent.Run, t ticket) (ticket, error) {
			m, err := read(t.File)
			if err != nil {
				return t, err
			}
			part := r.Replicas()[0]
			t.File = filepath.Join(dir, fmt.Sprintf("%d-%d.png", t.Image, part))
			return t, write(t.File, smoothed(m, strip(part)))
		}),
		agent.Block("keep", func(_ context.Context, _ *agent.Run, t ticket) ([]ticket, error) {
			return []ticket{t}, nil
		}),
		agent.Block("compress", store(dir, "photo")),
		agent.Block("trace", store(dir, "drawing")),
		agent.Block("read", store(dir, "text")))
	if err != nil {
		return err
	}
	nodes.Wait()
	return n.Close()
}

// store puts the parts of an image together and keeps it in a form for its kind.
func store(dir, kind string) func(context.Context, *agent.Run, []ticket) (ticket, error) {
	return func(_ context.Context, _ *agent.Run, parts []ticket) (ticket, error) {
		whole := image.NewGray(image.Rect(0, 0, width, height))
		top := 0
		for _, t := range parts {
			m, err := read(t.File)
			if err != nil {
				return t, err
			}
			draw.Draw(whole, m.Rect.Add(image.Pt(0, top)), m, image.Point{}, draw.Src)
			top += m.Rect.Dy()
		}
		if len(parts) == 0 || top != height {
			return ticket{}, errors.New("the parts are no image")
		}
		done := ticket{Image: parts[0].Image, Stored: parts[0].Stored}
		data, err := encode(kind, whole)
		if err != nil {
			return done, err
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.%s", done.Image, kind))
		done.Stored = append(done.Stored, file)
		return done, os.WriteFile(file, data, 0o600)
	}
}

func write(file string, m image.Image) error {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

func read(file string) (*image.Gray, error) {
	data, err := os.ReadFile(file) //nolint:gosec // A block of ours has written it.
	if err != nil {
		return nil, err
	}
	m, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	grey, ok := m.(*image.Gray)
	if !ok {
		return nil, fmt.Errorf("%s is no image of greys", file)
	}
	return grey, nil
}
