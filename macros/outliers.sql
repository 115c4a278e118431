{#- Whole nanoseconds, no more than a thousand seconds: no mean latency is that long. Null of null, which least() would make the cap.
    Below the cap no floor() overflows, so this does without nanoseconds() and its guard: it is on the path of every hour. -#}
{% macro capped_nanoseconds(latency_us) -%}
    case when {{ latency_us }} > 1e9 then 1e12 else cast(floor(({{ latency_us }}) * 1000 + 0.5) as double) end
{%- endmacro %}

{#- More than `sigma_multiple` standard deviations above the mean, in whole numbers: of n drives n * x - sum is n times the distance from
    the mean and `spread_ns` n * n times the variance. -#}
{% macro is_beyond_sigma(latency_ns) -%}
    (
        peer_count * {{ latency_ns }} > latency_sum_ns
        and (peer_count * {{ latency_ns }} - latency_sum_ns) * (peer_count * {{ latency_ns }} - latency_sum_ns)
        > {{ var('sigma_multiple') ** 2 }} * spread_ns
    )
{%- endmacro %}

{#- Whether the slowest drive of a RAID-hour may have a score of Ceph's: it is so far above the median that no lesser deviation can make the score. -#}
{% macro may_be_fail_slow(max_latency_us, median_latency_us) -%}
    (
        {{ max_latency_us }} >= {{ var('ceph_least_latency_us') }}
        and {{ max_latency_us }} - {{ median_latency_us }} >= {{ var('ceph_score') * var('ceph_least_mad_us') }}
    )
{%- endmacro %}

{#- No drive-hour below this is an outlier of HDFS or one that ZFS counts. HDFS has this limit itself. A fence of Q3 + k * max(Q3 - Q1, f * Q1) is
    lowest where both terms meet and Q3 is the median m: there Q1 = m / (1 + f), so the fence is m * (1 + k * f / (1 + f)). -#}
{% macro least_outlying_slowdown() -%}
    {{ [var('hdfs_median_multiple'), 1 + var('zfs_outlier_insensitivity') * var('zfs_least_iqr') / (1 + var('zfs_least_iqr'))] | min }}
{%- endmacro %}
