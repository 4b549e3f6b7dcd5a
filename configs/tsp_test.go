package configs_test

import (
	"io/fs"
	"testing"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/synchronizer"
)

func TestFilesLoad(t *testing.T) {
	files, err := fs.Glob(configs.Files, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		src, err := configs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := synchronizer.ParseConfig(name, src); err != nil {
			t.Errorf("%v", err)
		}
	}
}
