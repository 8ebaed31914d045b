export interface ConfirmedProps {
  /** The form is posted to this path. */
  readonly action: string
  /** What the button does, such as Remove. */
  readonly verb: string
  readonly label: string
  /** What the second button does, for screen readers. */
  readonly confirmLabel: string
}

/** A button that reveals a second button, for a change that cannot be undone. */
export function Confirmed({ action, verb, label, confirmLabel }: ConfirmedProps) {
  return (
    <details class="confirm">
      <summary aria-label={`${verb} ${label}`}>{verb}</summary>
      <form method="post" action={action}>
        <button class="danger" type="submit" aria-label={`Confirm: ${confirmLabel}`}>
          Confirm
        </button>
      </form>
    </details>
  )
}

export interface RevokeProps {
  readonly action: string
  readonly label: string
}

export function Revoke({ action, label }: RevokeProps) {
  return <Confirmed action={action} verb="Revoke" label={label} confirmLabel={`revoke ${label} permanently`} />
}
