package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan and newDocs write the pages that are made of the commands themselves. They
// are for those who package or change pegasus, and so are hidden.
func newMan() *cobra.Command {
	return pageWriter("man", "Write the man pages", func(root *cobra.Command) (map[string][]byte, error) {
		return pages(root, manName, func(cmd *cobra.Command, w io.Writer) error {
			return doc.GenMan(cmd, &doc.GenManHeader{Title: strings.ToUpper(manStem(cmd)), Section: "1", Source: "pegasus", Manual: "Pegasus"}, w)
		})
	})
}

func newDocs() *cobra.Command {
	return pageWriter("docs", "Write a Markdown page a subcommand", markdown)
}

func pageWriter(name, short string, write func(*cobra.Command) (map[string][]byte, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " DIR", Short: short, Long: name + " writes one file a subcommand into a directory, which it makes if need be.",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New(name + " needs a directory: pegasus " + name + " DIR")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := write(cmd.Root())
			if err != nil {
				return fail(err)
			}
			return fail(writeAll(args[0], files))
		},
	}
}

func writeAll(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Pages are for all.
		return err
	}
	for name, page := range files {
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil { //nolint:gosec // Likewise.
			return err
		}
	}
	return nil
}

// pages makes a page for each command that a user sees.
func pages(root *cobra.Command, name func(*cobra.Command) string, write func(*cobra.Command, io.Writer) error) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd != root && !cmd.IsAvailableCommand() {
			continue
		}
		var page bytes.Buffer
		if err := write(cmd, &page); err != nil {
			return nil, fmt.Errorf("the page of %s: %w", cmd.CommandPath(), err)
		}
		files[name(cmd)] = page.Bytes()
	}
	return files, nil
}

func manStem(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }
func manName(cmd *cobra.Command) string { return manStem(cmd) + ".1" }

// markdown makes the pages of docs/cli.
func markdown(root *cobra.Command) (map[string][]byte, error) {
	name := func(cmd *cobra.Command) string { return cmd.Name() + ".md" }
	link := func(page string) string { return strings.TrimPrefix(page, root.Name()+"_") }
	return pages(root, name, func(cmd *cobra.Command, w io.Writer) error {
		_, _ = io.WriteString(w, "<!-- Made by make docs from the command itself. -->\n\n") // To a buffer.
		return doc.GenMarkdownCustom(cmd, w, link)
	})
}
