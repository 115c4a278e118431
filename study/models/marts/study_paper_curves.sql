-- The curves of the study as the paper plots them. Grain: figure, curve, seq.
select figure, curve, seq, x, y from {{ ref('paper_curves') }}
