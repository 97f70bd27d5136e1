"""Section 5 of the paper and what its reviewers asked for, each by one command: `skillstack reproduce`.

`catalogue` says what there is; `jobs` what must be trained and measured for it, each thing once; `schedule` does that;
`collecting` makes data of it, `figures` draws and `page` writes docs/results.md from that data alone.
"""
