{#- The host of an alias HOST/DEVICE without its domain, which some sources leave out; an address as it is, and what stands behind an @ stays.
    Empty for another name. -#}
{% macro host_of(alias) -%}
case
        when regexp_extract({{ alias }}, '^([0-9][0-9.]*(@[^/]*)?)/', 1) <> '' then regexp_extract({{ alias }}, '^([0-9][0-9.]*(@[^/]*)?)/', 1)
        else lower(regexp_extract({{ alias }}, '^([^/.@]+)[^/]*/', 1)) || regexp_extract({{ alias }}, '^[^/@]*(@[^/]*)/', 1)
    end
{%- endmacro %}

{#- The alias of a world wide name that stands for a serial number: `5000c500a1b2c3d4`, `naa.5000c500a1b2c3d4`, or a 3 before it (SCSI). -#}
{% macro wide_name(drive_id) %}'wwn:0x' || regexp_replace(lower({{ drive_id }}), '^(0x|naa[.]|3)', ''){% endmacro %}
