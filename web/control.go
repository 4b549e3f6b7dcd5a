package web

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
)

// Change is an order to a synchronizer: to give parameters other values, or to read its configuration again.
type Change struct {
	Synchronizer string            `json:"synchronizer"`     // its name
	Group        string            `json:"group"`            // its group
	Values       map[string]string `json:"values,omitempty"` // of parameters, as a file writes them
	Reset        []string          `json:"reset,omitempty"`  // parameters that get their default again
	Reload       bool              `json:"reload,omitempty"` // the configuration is read again; then the others are empty
}

const (
	maxChange   = 64 << 10 // bytes of a change
	changeTime  = 8 * time.Second
	tokenHeader = "Pegasus-Token"
)

// serveControl has a change carried out, and answers with texts that name the differences. A page of another site can neither
// read the token nor set its header, and the header Origin has to name this page.
func (p *Page) serveControl(w http.ResponseWriter, r *http.Request) {
	if code, err := p.checkControl(r); err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	c, err := readChange(http.MaxBytesReader(w, r.Body, maxChange))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !p.stream.knows(name{c.Group, c.Synchronizer}) {
		http.Error(w, fmt.Sprintf("synchronizer %q of group %q: none of that name has answered: choose one of the overview", c.Synchronizer, c.Group), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		http.Error(w, "change: other questions took too long, and nothing was changed: try again", http.StatusServiceUnavailable)
		return
	}
	texts, err := p.control(ctx, c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(append([]string{}, texts...)) // The browser may be gone.
}

// checkControl says why a request may not change the run.
func (p *Page) checkControl(r *http.Request) (code int, err error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	site := r.Header.Get("Sec-Fetch-Site")
	switch {
	case p.control == nil:
		return http.StatusForbidden, errors.New("change: the page only reads: start pegasus ui with --allow-control")
	case r.Header.Get("Origin") == "" || site != "" && site != "same-origin": // Origin is this page, by checkOrigin.
		return http.StatusForbidden, errors.New("change: the request does not say that it comes from this page: use the buttons of the page")
	case subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(p.token)) == 0:
		return http.StatusForbidden, errors.New("change: the token is missing or old: load the page again")
	case kind != "application/json":
		return http.StatusUnsupportedMediaType, fmt.Errorf("change: its type is %q: send application/json", kind)
	}
	return 0, nil
}

// readChange reads one change and nothing else.
func readChange(body io.Reader) (*Change, error) {
	c := &Change{}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("change: at byte %d: %w: send an object with synchronizer, group, and values, reset or reload", d.InputOffset(), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("change: at byte %d: there is text behind the object: send one object", d.InputOffset())
	}
	if sets := len(c.Values)+len(c.Reset) > 0; sets == c.Reload {
		return nil, errors.New("change: it has to set parameters or to reload the configuration: send values and reset, or reload alone")
	}
	return c, nil
}

// knows says whether a synchronizer of that name has answered.
func (st *stream) knows(n name) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.latest[n] != nil
}
