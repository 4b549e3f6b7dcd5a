// Package web shows a run as a page in a browser. A [Page] takes values of package
// monitor from the program that has them, and is an http.Handler.
//
// The page only reads. It answers to names of the loopback interface alone, and to
// requests of its own pages alone. All browsers share one encoding of each value; the
// page drops a browser that reads too slowly, and the browser connects again.
package web
