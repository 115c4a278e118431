{#- The kind of drives that a drive is compared with: disks, SSDs behind SATA or SAS, NVMe, and drives of unknown kind (`unknown`). A device
    nvme0n1 says by its name what it is. kind: `disk`, `ssd` or null. -#}
{% macro peer_kind(kind, interface, drive_id) -%}
case
        when {{ kind }} = 'disk' then 'disk'
        when lower({{ interface }}) = 'nvme' or {{ drive_id }} like '%/nvme%' then 'nvme'
        else coalesce({{ kind }}, 'unknown')
    end
{%- endmacro %}

{#- The group in which drives of one kind are compared: the RAID group's own name for one kind, else with the kind behind it. In an array, which
    is mostly of one kind, a drive of unknown kind is set apart only where two kinds are known (is_mixed); drives that only share a host always are. -#}
{% macro peer_group(raid_group_id, kind, named_kind, is_guessed, is_mixed) -%}
{{ raid_group_id }} || case
        when {{ kind }} <> {{ named_kind }}
            and ({{ is_guessed }} or {{ is_mixed }} or ({{ kind }} <> 'unknown' and {{ named_kind }} <> 'unknown'))
            then {{ behind_group(kind) }}
        else ''
    end
{%- endmacro %}

{#- Suffix of a RAID group's name where one kind of its drives is compared separately. -#}
{% macro behind_group(kind) %}' (' || {{ kind }} || ')'{% endmacro %}

{% macro peer_kinds() %}{{ return(['disk', 'ssd', 'nvme', 'unknown']) }}{% endmacro %}
