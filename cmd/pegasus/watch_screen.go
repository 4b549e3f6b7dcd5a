package main

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/gopegasus/pegasus/internal/show"
)

// newScreen is a program that shows a run on a full screen, and the feed of it.
func newScreen(in io.Reader, out io.Writer, more ...tea.ProgramOption) (*tea.Program, *feed) {
	options := []tea.ProgramOption{tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()}
	p := tea.NewProgram(screenModel{show.NewWatch(true)}, append(options, more...)...)
	return p, feedTo(func(e show.Entry) { p.Send(e) }, func() error { return nil })
}

// runScreen returns when the user ends the program, or the context ends. With a
// context of its own the program would leave its reader of keys behind.
func runScreen(ctx context.Context, p *tea.Program) error {
	defer context.AfterFunc(ctx, p.Quit)()
	_, err := p.Run()
	return err
}

// screenModel has the terminal drive a Watch.
type screenModel struct{ *show.Watch }

// Init implements tea.Model.
func (screenModel) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (m screenModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.Width, m.Height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if m.Key(msg.String()) {
			return m, tea.Quit
		}
	case show.Entry:
		m.Apply(msg)
	}
	return m, nil
}

// View implements tea.Model.
func (m screenModel) View() tea.View {
	v := tea.NewView(m.Screen())
	v.AltScreen = true
	v.WindowTitle = "pegasus watch"
	return v
}
