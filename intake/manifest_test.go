package intake

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func manifest(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := ReadManifest(t.Context(), iotest.OneByteReader(strings.NewReader(text)), "songs", "/catalog")
	require.NoError(t, err)
	return m
}

// summary is the place of each row, and its refusal or its name.
func summary(m *Manifest) (out []string) {
	for _, f := range m.rows {
		text := f.refused
		if text == "" {
			text = "ok " + f.name
		}
		out = append(out, f.at.String()+": "+text)
	}
	return out
}

func TestManifestColumnsAreReadInEveryFormat(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"CSV": "audio_id,file,url,external_id,source,metadata,meta.Label\n" +
			"7,a.wav,,ext-1,Spare,\"{\"\"year\"\":1999}\",Blue\n8,,https://h/b.wav?sig=secret,,,,\n",
		"CSV with semicolons, a byte order mark and CRLF": "\xef\xbb\xbfAudio_ID;File;URL;External_ID;Source;Metadata;meta.Label\r\n" +
			"7;a.wav;;ext-1;Spare;\"{\"\"year\"\":1999}\";Blue\r\n8;;https://h/b.wav?sig=secret;;;;\r\n",
		"CSV with tabs": "audio_id\tfile\turl\texternal_id\tsource\tmetadata\tmeta.Label\n" +
			"7\ta.wav\t\text-1\tSpare\t{\"year\":1999}\tBlue\n8\t\thttps://h/b.wav?sig=secret\t\t\t\t",
		"JSONL": `{"audio_id":7,"file":"a.wav","external_id":"ext-1","source":"Spare","metadata":{"year":1999},"meta.Label":"Blue"}` + "\n\n" +
			`{"audio_id":"8","url":"https://h/b.wav?sig=secret","metadata":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "CSV with tabs" { // a bare quote within a field is refused
				text = strings.Replace(text, `{"year":1999}`, `"{""year"":1999}"`, 1)
			}
			m := manifest(t, text)
			require.Len(t, m.rows, 2, summary(m))
			a, b := m.rows[0], m.rows[1]
			require.Empty(t, a.refused+b.refused)
			require.Equal(t, int64(7), *a.audioID)
			require.Equal(t, "/catalog/a.wav", a.path, "relative to the manifest")
			require.Equal(t, "ext-1", a.externalID)
			require.Equal(t, "spare", a.source)
			require.JSONEq(t, `{"year":1999,"Label":"Blue"}`, string(a.metadata))
			require.Equal(t, int64(8), *b.audioID)
			require.Equal(t, "https://h/b.wav?sig=secret", b.url)
			require.NotContains(t, b.name, "secret")
			require.Nil(t, b.metadata)
		})
	}
}

func TestBadCSVRowIsRefusedWithItsLineAndOtherRowsAreKept(t *testing.T) {
	t.Parallel()
	m := manifest(t, `audio_id,file,meta.note,metadata
1,a.wav,"two
lines",
-2,b.wav,,
x,c.wav,,
,d.wav,,
,,,

5.0,e.wav,,
99999999999999999999,f.wav,,
7,,,
8,h.wav
9,"i".wav,,
10,i "x".wav,,
11,j`+"\xe9"+`.wav,,
12,k.wav,,[1]
13,https://h/l.wav,,
14,m.wav,"a ""quoted"" note",
15,n.wav,never closed as "it does not begin so,
16,/abs/o.wav,,"{""note"":1}"


`)
	require.Equal(t, []string{
		"songs row 1 (line 2): ok /catalog/a.wav",
		"songs row 2 (line 4): audio_id -2 is negative: it must be 0 or more",
		`songs row 3 (line 5): audio_id "x" is not an integer`,
		"songs row 4 (line 6): ok /catalog/d.wav",
		"songs row 5 (line 7): is an empty row",
		`songs row 6 (line 9): audio_id "5.0" is not an integer`,
		`songs row 7 (line 10): audio_id "99999999999999999999" does not fit in 64 bits`,
		"songs row 8 (line 11): names neither a file nor a url",
		"songs row 9 (line 12): has 2 fields, but the header has 4: enclose text that contains separators in quotes",
		"songs row 10 (line 13): has a quoted field that is not closed or that contains a single quote character; double inner quotes",
		"songs row 11 (line 14): has a quote inside an unquoted field: enclose the field in quotes and double the inner quote",
		"songs row 12 (line 15): is not UTF-8 but another encoding, such as Windows-1252 or Latin-1 (byte 0xE9): save the manifest as UTF-8",
		"songs row 13 (line 16): metadata is not a JSON object",
		"songs row 14 (line 17): has a URL in the file column: move it to the url column",
		"songs row 15 (line 18): ok /catalog/m.wav",
		"songs row 16 (line 19): has a quote inside an unquoted field: enclose the field in quotes and double the inner quote",
		"songs row 17 (line 20): ok /abs/o.wav",
	}, summary(m), "empty lines are not rows")
}

func TestBadJSONLRowIsRefusedWithItsLineAndOtherRowsAreKept(t *testing.T) {
	t.Parallel()
	m := manifest(t, `
{"audio_id":1,"file":"a.wav"}

{"audio_id":-2,"file":"b.wav"}
{"audio_id":3.5,"file":"c.wav"}
{"audio_id":true,"file":"d.wav"}
{"audio_id":5,"file":["e.wav"]}
{"audio_id":6,"fil":"f.wav"}
{"audio_id":7,"audio_id":8,"file":"g.wav"}
{"audio_id":9,"file":"h.wav"
not JSON
[1]
{"audio_id":10,"file":"j`+"\xff"+`.wav"}
{"audio_id":11,"file":"k.wav"} {}
{"audio_id":12,"file":"l.wav","url":"https://h/l"}
{"audio_id":13,"file":"m.wav","metadata":[]}
{"audio_id":14,"file":"n.wav","metadata":{"a":1},"meta.a":2}
{"audio_id":15,"file":"o.wav","external_id":77}
{"file":"p.wav"}`)
	require.Equal(t, []string{
		"songs row 1 (line 2): ok /catalog/a.wav",
		"songs row 2 (line 4): audio_id -2 is negative: it must be 0 or more",
		`songs row 3 (line 5): audio_id "3.5" is not an integer`,
		`songs row 4 (line 6): audio_id "true" is not an integer`,
		"songs row 5 (line 7): has a file that is not a string",
		`songs row 6 (line 8): has an unknown field "fil": the fields are audio_id, file, url, external_id, source, metadata or meta.NAME`,
		`songs row 7 (line 9): has the field "audio_id" twice`,
		"songs row 8 (line 10): is not valid JSON: it ends too early",
		"songs row 9 (line 11): is not valid JSON: it has an error at byte 2",
		"songs row 10 (line 12): is not a JSON object",
		"songs row 11 (line 13): is not UTF-8 but another encoding, such as Windows-1252 or Latin-1 (byte 0xFF): save the manifest as UTF-8",
		"songs row 12 (line 14): has text after its JSON object",
		"songs row 13 (line 15): names both a file and a url: use only one",
		"songs row 14 (line 16): metadata is not a JSON object",
		`songs row 15 (line 17): has the metadata "a" twice`,
		"songs row 16 (line 18): ok /catalog/o.wav",
		"songs row 17 (line 19): ok /catalog/p.wav",
	}, summary(m))
	require.Equal(t, "77", m.rows[15].externalID)
	require.Nil(t, m.rows[16].audioID)
}

func TestUnusableManifestIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"UTF-16 with a mark":    {"\xff\xfea\x00u\x00", "songs line 1: is UTF-16 (little endian), not UTF-8 text: save it as CSV or JSONL in UTF-8"},
		"UTF-16, big endian":    {"\xfe\xff\x00a\x00u", "songs line 1: is UTF-16 (big endian), not UTF-8 text"},
		"UTF-16 without a mark": {"a\x00u\x00d\x00", "songs line 1: is UTF-16 or binary, not UTF-8 text"},
		"UTF-32":                {"\xff\xfe\x00\x00a\x00\x00\x00", "songs line 1: is UTF-32 (little endian)"},
		"spreadsheet":           {"PK\x03\x04\x14\x00", "songs line 1: is a zip file or a spreadsheet"},
		"Latin-1 header":        {"audio_id,file,meta.k\xfcnstler\n1,a.wav,x\n", "songs line 1: is not UTF-8 but another encoding"},
		"unknown column":        {"\naudio_id,file,artist\n1,a.wav,x\n", `songs line 2: has an unknown column "artist": the first line must name the columns, which are audio_id`},
		"no header":             {"1,a.wav\n", `songs line 1: has an unknown column "1"`},
		"a URL for a header":    {"https://user:sesame@h/a.mp3?sig=sesame,1\n", `songs line 1: has an unknown column "https://h/a.mp3"`},
		"column twice":          {"audio_id,file,File\n", `songs line 1: has the column "file" twice`},
		"column without a name": {"audio_id,file,\n", "songs line 1: has no name for column 3"},
		"neither file nor url":  {"audio_id,external_id\n", "songs line 1: needs a file or url column"},
		"old Mac":               {"audio_id,file\r1,a.wav\r", "songs line 1: has CR line endings"},
		"JSON array":            {"[{}]", "songs line 1: is a JSON array: write one object per line"},
		"empty":                 {"", "songs line 1: has no rows"},
		"header only":           {"audio_id,file\n\n", "songs line 1: has no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summary(manifest(t, c.text))
			require.Len(t, got, 1)
			require.True(t, strings.HasPrefix(got[0], c.want), "%q does not begin with %q", got[0], c.want)
		})
	}
}

func TestUnclosedQuoteIsReportedWithTheLinesItTook(t *testing.T) {
	t.Parallel()
	const (
		head     = "audio_id,file,meta.n\n1,a.wav,\n"
		unclosed = "songs row 2 (line 3): opens a quote that is not closed correctly: lines 3 to 5 were read as one row"
		tooLong  = "songs row 2 (line 3): is longer than 1 MiB, so a closing quote is probably missing; the rows after it were not read"
	)
	for name, c := range map[string]struct {
		rest string
		want []string
	}{
		"up to the end of the file": {"2,b.wav,\"lost\n3,c.wav,\n4,d.wav,\n", []string{unclosed}},
		"up to the next quote": {
			"2,b.wav,\"lost\n3,c.wav,\n4,\"d.wav\",\n5,e.wav,\n", []string{unclosed, "songs row 3 (line 6): ok /catalog/e.wav"},
		},
		"more than 1 MiB":                 {"2,b.wav,\"lost\n" + strings.Repeat("3,c.wav,\n", 2*maxManifestRow/9), []string{tooLong}},
		"more than 1 MiB without a quote": {"2," + strings.Repeat("b", 2*maxManifestRow), []string{tooLong}},
		"more than 1 MiB in one field":    {"\"" + strings.Repeat("b", 2*maxManifestRow), []string{tooLong}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := append([]string{"songs row 1 (line 2): ok /catalog/a.wav"}, c.want...)
			require.Equal(t, want, summary(manifest(t, head+c.rest)))
		})
	}
}

func TestFailingReaderIsAnErrorOfTheManifest(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk removed")
	for _, start := range []string{"", "audio_id,file\n1,a.wav\n", "{\"audio_id\":1,\"file\":\"a.wav\"}\n"} {
		r := iotest.DataErrReader(&brokenReader{strings.NewReader(start), broken})
		_, err := ReadManifest(t.Context(), r, "songs", "")
		require.ErrorIs(t, err, broken)
	}
}

type brokenReader struct {
	r   *strings.Reader
	err error
}

func (b *brokenReader) Read(p []byte) (int, error) {
	if b.r.Len() == 0 {
		return 0, b.err
	}
	return b.r.Read(p)
}

func FuzzManifest(f *testing.F) {
	f.Add("audio_id,file\n1,\"a\n\"\"b\"\n,\n")
	f.Add("{\"audio_id\":1}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadManifest(t.Context(), strings.NewReader(text), "m", "")
		require.NoError(t, err)
		require.NotEmpty(t, m.rows)
		last := Position{}
		for _, r := range m.rows {
			require.GreaterOrEqual(t, r.at.Row, last.Row)
			require.GreaterOrEqual(t, r.at.Line, last.Line)
			require.False(t, r.refused == "" && (r.path == "") == (r.url == ""))
			last = r.at
		}
	})
}
