-- What Check looks at.

-- name: settings
SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names'), current_setting('default_transaction_isolation'),
    current_setting('default_transaction_read_only'), current_setting('server_encoding'),
    current_setting('server_version_num')::int, pg_is_in_recovery(), pg_backend_pid()

-- name: standbys
SELECT count(*) FILTER (WHERE sync_state = 'async')::int, count(*) FILTER (WHERE sync_state IS NULL)::int FROM pg_stat_replication

-- name: tables
SELECT relname::text FROM pg_class
WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' AND relpersistence <> 'p' ORDER BY relname
