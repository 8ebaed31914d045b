import { SubmitOrCancel } from '../design/form.tsx'
import { PageHead } from '../design/parts.tsx'
import { Kept, type KeptFields } from './confirm.tsx'

export interface ConfirmDecisionProps {
  /** The path of the decision, with the filters of the list. */
  readonly action: string
  /** What happens to how many: `Reject 914 platforms`. */
  readonly what: string
  readonly kept: KeptFields
  /** The address of the list. */
  readonly back: string
}

/** Asks before a decision about many platforms, because it concerns more than one screen shows. */
export function ConfirmDecision({ action, what, kept, back }: ConfirmDecisionProps) {
  return (
    <>
      <PageHead
        title={`${what}?`}
        about="The selection is larger than one screen. Each platform gets the same decision."
      />
      <section class="card narrow">
        <form class="stack body" method="post" action={action}>
          <Kept fields={kept} />
          <input type="hidden" name="confirmed" value="yes" />
          <SubmitOrCancel cancel={back}>{what}</SubmitOrCancel>
        </form>
      </section>
    </>
  )
}
