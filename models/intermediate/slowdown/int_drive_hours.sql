{#- Worked out when they are read, from the same doubles: stored they would be half of the store. -#}
{{ config(meta={'made': 'by_day', 'ratios': peer_ratios()}) }}
-- Each drive-hour compared with its peers, as it is kept. Every accepted row, of any role. Grain: drive_id, hour_utc.
select
    drive_id, hour_utc, raid_group_id, is_data_drive, is_in_population, is_peer, latency_us, median_latency_us, slowdown, is_slow, is_mild,
    exclusion_reason, coverage, io_count, median_io_count, rate_imbalance, io_bytes, io_size_bytes, median_io_size_bytes, size_imbalance,
    read_latency_us, median_read_latency_us, write_latency_us, median_write_latency_us, read_slowdown, write_slowdown, declared_kind,
    is_group_guessed, day_utc
from {{ ref('int_drive_hours__compared') }}
