package main

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"
)

// watchScreen shows a run on a full screen until somebody ends it, or the context
// ends.
func watchScreen(ctx context.Context, s *watchSource, first watching, in io.Reader, out io.Writer, more ...tea.ProgramOption) error {
	options := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()}
	p := tea.NewProgram(screenModel{newWatchModel(first, true)}, append(options, more...)...)
	ended, pumped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(pumped)
		pump(ctx, s, p, ended)
	}()
	_, err := p.Run()
	close(ended)
	<-pumped
	return err
}

// pump hands on what comes until the program has ended. It ends the program with
// the context: with a context of its own it would leave its reader of keys behind.
func pump(ctx context.Context, s *watchSource, p *tea.Program, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			p.Quit()
			<-ended
			return
		case u := <-s.updates:
			p.Send(u)
			if n := s.missed.Swap(0); n > 0 {
				p.Send(missedUpdates(n))
			}
		}
	}
}

type missedUpdates uint64

// screenModel has the terminal drive a watchModel.
type screenModel struct{ *watchModel }

// Init implements tea.Model.
func (screenModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m screenModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.key(msg.String()) {
			return m, tea.Quit
		}
	case update:
		m.apply(msg)
	case missedUpdates:
		m.missed += uint64(msg)
	}
	return m, nil
}

// View implements tea.Model.
func (m screenModel) View() tea.View {
	v := tea.NewView(m.view())
	v.AltScreen = true
	v.WindowTitle = "pegasus watch"
	return v
}
