{#- A drive-hour's I/O size and how it compares with its peers, by column: quotients of what is stored beside them (int_drive_hours). -#}
{% macro peer_ratios() %}
    {{- return({
        'slowdown': 'case when is_peer then latency_us / median_latency_us end',
        'rate_imbalance': 'case when is_peer then cast(io_count as double) / nullif(median_io_count, 0.0) end',
        'io_size_bytes': io_size(),
        'size_imbalance': 'case when is_peer then ' ~ io_size() ~ ' / nullif(median_io_size_bytes, 0.0) end',
        'read_slowdown': 'case when is_peer then read_latency_us / nullif(median_read_latency_us, 0.0) end',
        'write_slowdown': 'case when is_peer then write_latency_us / nullif(median_write_latency_us, 0.0) end',
    }) }}
{% endmacro %}
