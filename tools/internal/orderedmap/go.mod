module github.com/wk8/go-ordered-map/v2

go 1.24

require github.com/pb33f/ordered-map/v2 v2.3.1
