"""How a worker takes a flow run: it notes the run, and signs the PENDING states that it proposes to Prefect."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import State
from prefect.client.schemas.responses import OrchestrationResult, SetStateStatus, StateAcceptDetails

from assetflow.worker.taken_runs import TakenRuns


def note_what_is_taken(client: PrefectClient, taken: TakenRuns) -> None:
    """Let a worker's client note each run before it proposes a PENDING state, and sign that state.

    Prefect then knows which worker has a run. It refuses a run that another worker has. It also refuses one that this
    worker has, if its answer was lost and the client has asked once more: that run is taken.
    """
    propose = client.set_flow_run_state

    async def propose_signed(
        flow_run_id: UUID | str, state: State[Any], force: bool = False
    ) -> OrchestrationResult[Any]:
        if force or not state.is_pending():
            return await propose(flow_run_id, state, force)
        run = UUID(str(flow_run_id))
        taken.note(run)
        signed = state.model_copy(update={"message": taken.signature})
        result: OrchestrationResult[Any] = await propose(run, signed)
        # Once a run is taken, its process needs the note, whatever becomes of the states that follow.
        if state.name != "Pending" or result.status is SetStateStatus.ACCEPT:
            return result
        found = (await client.read_flow_run(run)).state
        if found is not None and found.is_pending() and found.message == taken.signature:
            return OrchestrationResult(status=SetStateStatus.ACCEPT, state=found, details=StateAcceptDetails())
        taken.forget(run)
        return result

    client.set_flow_run_state = propose_signed
