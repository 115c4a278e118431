{#- Whether a source watches devices: it says what each is when that changes, and again where a delivery begins, which is no news. It still sees what it
    said last. -#}
{% macro is_watching(source) %}{{ source }} in ('prometheus', 'ceph'){% endmacro %}

{#- Whether a source that watches devices also says when it no longer sees a drive, by a cut with an end. -#}
{% macro reports_ends(source) %}{{ source }} = 'prometheus'{% endmacro %}
