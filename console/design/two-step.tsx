export interface TwoStepProps {
  /** The form is posted to this path. */
  readonly action: string
  readonly verb: 'Revoke' | 'Remove'
  /** What is revoked or removed, for screen readers. */
  readonly label: string
  /** The words after `label` in the second step: `permanently`. */
  readonly effect?: string
}

/** A button that reveals a second button, because the change is permanent. */
export function TwoStep({ action, verb, label, effect = 'permanently' }: TwoStepProps) {
  return (
    <details class="confirm">
      <summary aria-label={`${verb} ${label}`}>{verb}</summary>
      <form method="post" action={action}>
        <button class="danger" type="submit" aria-label={`Confirm: ${verb.toLowerCase()} ${label} ${effect}`}>
          Confirm
        </button>
      </form>
    </details>
  )
}
