export interface RevokeProps {
  /** The form is posted to this path. */
  readonly action: string
  readonly label: string
}

/** A button that reveals a second button, because revoking is permanent. */
export function Revoke({ action, label }: RevokeProps) {
  return (
    <details class="confirm">
      <summary aria-label={`Revoke ${label}`}>Revoke</summary>
      <form method="post" action={action}>
        <button class="danger" type="submit" aria-label={`Confirm: revoke ${label} permanently`}>
          Confirm
        </button>
      </form>
    </details>
  )
}
