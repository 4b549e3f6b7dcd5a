// Package show is how what is known looks to a person, or as a line of JSON: values
// in, text out. It has no flags, asks nobody and writes nowhere.
package show
