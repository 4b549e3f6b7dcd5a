package configs_test

import (
	"io/fs"
	"testing"

	"github.com/gopegasus/pegasus/configs"
	"github.com/gopegasus/pegasus/internal/configfile"
)

func TestProgramsLoad(t *testing.T) {
	files, err := fs.Glob(configs.Files, "programs/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		src, err := configs.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := configfile.ParseProgram(name, src)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		// Each of them uses what it is there to show.
		if len(file.Plan.Predicates()) == 0 || file.Plan.Blocks() < 4 {
			t.Errorf("%s: %d blocks, predicates %v", name, file.Plan.Blocks(), file.Plan.Predicates())
		}
	}
}
