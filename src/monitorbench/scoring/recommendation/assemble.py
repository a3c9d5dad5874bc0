"""From the answer among contenders to `recommendation.json`."""

from collections.abc import Sequence

from monitorbench.metrics.choice.choose import cheapest
from monitorbench.metrics.choice.facts import (
    SCHEMA_VERSION,
    AtTest,
    Option,
    PilotSaid,
    PromiseKept,
    Recommendation,
    SettingsFacts,
    ShortcutsFacts,
    SwitchFacts,
)
from monitorbench.metrics.rates import as_list
from monitorbench.metrics.usage import UsageFacts
from monitorbench.scoring.numbers import Drawn
from monitorbench.scoring.recommendation.contenders import Contender
from monitorbench.scoring.recommendation.decide import DeploymentDecision, answer
from monitorbench.scoring.recommendation.deployment import Deployment
from monitorbench.scoring.recommendation.figures import at_test
from monitorbench.scoring.recommendation.more import Promise
from monitorbench.scoring.recommendation.rivals import paired


def assembled(
    contenders: Sequence[Contender],
    shortcuts: Sequence[Contender],
    promises: Sequence[Promise | None],
    usages: Sequence[UsageFacts | None],
    deployment: Deployment,
    checks: ShortcutsFacts,
    pilot: PilotSaid | None,
    drawn: Drawn,
    *,
    data: str,
    positive_means: str,
) -> Recommendation:
    """The recommendation, its sentences still empty; `promises` and `usages` are of the contenders."""
    found = answer(contenders, shortcuts, promises, deployment, drawn)
    options = _options(contenders, found, promises, usages, deployment, drawn)
    order = [*found.choice.order, *(i for i, at in enumerate(found.choice.at) if at is None)]
    best = found.best
    runner_up = next((i for i in found.choice.order if i != best), None)
    allowed = None if best is None else contenders[best].allowed
    at = None if best is None else options[best]["at_test"]
    does = pilot is not None and pilot["decision"] == "intervene" and found.kind == "recommend"
    return Recommendation(
        schema_version=SCHEMA_VERSION,
        decision=found.kind,
        sentence="",
        remarks=[],
        monitor=None if best is None else contenders[best].monitor,
        prompt=None if best is None else contenders[best].prompt,
        threshold=None if best is None else options[best]["threshold"],
        mode="intervene" if does else "watch",
        data=data,
        positive_means=positive_means,
        n_test=len(contenders[0].judged),
        settings=_settings(deployment),
        promise=None
        if allowed is None or allowed.promised is None or allowed.guarantee is None
        else PromiseKept(
            alpha=allowed.guarantee.alpha,
            delta=allowed.guarantee.delta if allowed.guarantee.method == "neyman_pearson" else None,
            n=allowed.promised.n,
            effective_n=allowed.promised.effective_n,
            method=allowed.guarantee.method,
            n_candidates=allowed.guarantee.n_candidates,
        ),
        unbound_cost=_unbound(contenders, deployment),
        at_test=at,
        runner_up=None if runner_up is None else contenders[runner_up].monitor,
        runner_up_prompt=None if runner_up is None else contenders[runner_up].prompt,
        options=[options[i] for i in order],
        rivals=found.rivals,
        shortcuts=checks,
        more=found.more,
        changes=[_named(one, contenders) for one in found.changes],
        regret=found.regret,
        pilot=pilot,
    )


def _options(
    contenders: Sequence[Contender],
    found: DeploymentDecision,
    promises: Sequence[Promise | None],
    usages: Sequence[UsageFacts | None],
    deployment: Deployment,
    drawn: Drawn,
) -> list[Option]:
    constant = deployment.constant(deployment.stakes.base_rate)
    chosen = None
    if found.best is not None and (index := found.choice.at[found.best]) is not None:
        chosen = contenders[found.best].answers_at(index)
    options = []
    for i, (one, taken) in enumerate(zip(contenders, usages, strict=True)):
        at, cost = found.choice.at[i], found.choice.costs[i]
        answers = None if at is None else one.answers_at(at)
        there: AtTest | None = None if answers is None else at_test(answers, deployment, drawn)
        difference, bounds = None, None
        if answers is not None and chosen is not None and i != found.best:
            difference, bounds = paired(answers, chosen, deployment, drawn)
        options.append(
            Option(
                monitor=one.monitor,
                prompt=one.prompt,
                threshold=None if at is None else float(one.allowed.thresholds[at]),
                reason="" if at is not None else _why_none(one),
                reads_answers=one.reads_answers,
                calibration_cost=None if cost is None else cost + constant,
                n_calibration=one.allowed.n_benign,
                n_unscored=one.n_unscored,
                seconds_p95=taken["seconds_p95"] if taken else None,
                price=taken["cost"] if taken else None,
                robustness=None,
                robustness_at="",
                at_test=there,
                difference=difference,
                difference_ci=as_list(bounds),
            )
        )
    return options


def _why_none(one: Contender) -> str:
    """Why a monitor has no threshold to take."""
    if one.outside:
        return one.outside
    if one.allowed.promised is not None and one.allowed.promised.reason:
        return one.allowed.promised.reason
    if not one.allowed.n_in_budget:
        return "no threshold is shown to keep the budget of alerts"
    return "the calibration split has samples of one label only, or none with a score"


def _unbound(contenders: Sequence[Contender], deployment: Deployment) -> float | None:
    """The least cost that any threshold of a monitor that may be chosen has on the calibration split."""
    inside = [one.on_calibration for one in contenders if not one.outside]
    known = [cost for cost in cheapest(inside, deployment.of_errors).costs if cost is not None]
    return min(known) + deployment.constant(deployment.stakes.base_rate) if known else None


def _named(change: SwitchFacts, contenders: Sequence[Contender]) -> SwitchFacts:
    """With the monitor's name in place of its number."""
    if not change["instead"].isdigit():
        return change
    one = contenders[int(change["instead"])]
    return SwitchFacts(**{**change, "instead": one.monitor, "prompt": one.prompt})


def _settings(deployment: Deployment) -> SettingsFacts:
    stakes, settings = deployment.stakes, deployment.settings
    return SettingsFacts(
        base_rate=stakes.base_rate,
        base_rates=list(settings.base_rates),
        cost_miss=stakes.cost_miss,
        cost_alarm=stakes.cost_alarm,
        cost_audit=settings.cost_audit,
        samples_per_day=settings.samples_per_day,
        alerts_per_day=settings.alerts_per_day,
        money_per_day=settings.money_per_day,
        seconds=settings.seconds,
        unscored=settings.unscored,
        promise=settings.promise,
    )
