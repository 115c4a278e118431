"""Perseus' regression of a RAID group's day: which latency its samples' throughput lets one expect, and how much above it is still usual.

Grain: raid_group_id, day_utc; only days of enough drives, with a cluster. What follows from it is SQL (int_sampled_days).
The bound at a throughput x is `curve(u) + sqrt(spread(u))`, polynomials of u = (x - throughput_mean) / throughput_deviation.
"""

COLUMNS = """
    raid_group_id varchar, day_utc date, throughput_mean double, throughput_deviation double, curve double[], spread double[],
    sample_count bigint, inlier_count bigint
"""


def model(dbt, session):
    """Fit every day of the batch, in order of drive and time: the same samples give the same bits, however they came."""
    settings = {
        "eps": dbt.config.meta_get("eps"),
        "neighbours": dbt.config.meta_get("neighbours"),
        "degree": dbt.config.meta_get("degree"),
        "level": dbt.config.meta_get("level"),
        "most": dbt.config.meta_get("most_samples"),
    }
    fewest_drives = dbt.config.meta_get("fewest_drives")
    # once: the view joins the day's hours each time it is asked
    session.execute(f"create or replace temp table perseus_samples as {dbt.ref('int_drive_samples').sql_query()}")
    session.execute(f"create or replace temp table perseus_fits ({COLUMNS})")
    for (day,) in session.execute("select distinct day_utc from perseus_samples order by day_utc").fetchall():
        for group, throughput, latency in _groups(session, day, fewest_drives):
            fit = fitted(throughput, latency, **settings)
            if fit is not None:
                session.execute("insert into perseus_fits values (?, ?, ?, ?, ?, ?, ?, ?)", [group, day, *fit])
    return session.table("perseus_fits")


def _groups(session, day, fewest_drives):
    """Each RAID group of a day with enough drives: its name, and throughput and latency of its samples, by drive and time."""
    groups = session.execute(
        """
        select raid_group_id, count(*) from perseus_samples where day_utc = ?
        group by raid_group_id having count(distinct drive_id) >= ? order by raid_group_id
        """,
        [day, fewest_drives],
    ).fetchall()
    # a day at a time, and no names: what is held is two numbers a sample
    rows = session.execute(
        """
        select throughput_per_second, latency_us from perseus_samples
        where day_utc = ? and list_contains(?, raid_group_id) order by raid_group_id, drive_id, from_utc
        """,
        [day, [group for group, _ in groups]],
    ).fetchnumpy()
    begin = 0
    for group, count in groups:
        span = slice(begin, begin + count)
        yield group, rows["throughput_per_second"][span], rows["latency_us"][span]
        begin += count


def fitted(throughput, latency, *, eps, neighbours, degree, level, most):
    """The row of one RAID group's day without its key, for samples of throughput (1/s) and latency (us); None where nothing can be fitted.

    eps, neighbours: of DBSCAN over the z-scores; degree: of the curve; level: of the two-sided prediction interval, whose upper end is the
    bound; most: samples that are fitted, evenly drawn: DBSCAN holds every pair of neighbours.
    """
    # heavy: not to be paid for by who has no samples
    import numpy as np
    from scipy.stats import t
    from sklearn.cluster import DBSCAN
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    count = len(latency)
    if count < neighbours:
        return None
    drawn = np.arange(min(count, most)) * count // min(count, most)
    points = np.column_stack([throughput, latency])[drawn]
    scaler = StandardScaler().fit(points)
    scores = scaler.transform(points)
    # samples that are all alike have no components to speak of: they stay where they are
    with np.errstate(invalid="ignore"):
        turned = PCA(n_components=2).fit_transform(scores)
    labels = DBSCAN(eps=eps, min_samples=neighbours).fit_predict(turned)
    if labels.max() < 0:
        return None
    is_usual = labels == np.bincount(labels[labels >= 0]).argmax()
    u, usual_latency = scores[is_usual, 0], points[is_usual, 1]
    terms = PolynomialFeatures(degree).fit_transform(u[:, None])
    inverse = np.linalg.pinv(terms)
    curve = inverse @ usual_latency
    freedom = len(u) - np.linalg.matrix_rank(terms)
    if freedom < 1:
        return None
    covariance = inverse @ inverse.T
    # the variance of a new observation at u is residual variance times 1 + terms(u) covariance terms(u): a polynomial of twice the degree
    spread = np.array([np.trace(covariance[::-1], power - degree) for power in range(2 * degree + 1)])
    spread[0] += 1.0
    spread *= t.ppf((1 + level) / 2, freedom) ** 2 * np.sum((usual_latency - terms @ curve) ** 2) / freedom
    return (
        float(scaler.mean_[0]), float(scaler.scale_[0]), curve.tolist(), spread.tolist(), count, int(is_usual.sum()),
    )  # fmt: skip
