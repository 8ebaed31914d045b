export interface TwoStepProps {
  /** The form is posted to this path. */
  readonly action: string
  readonly verb: 'Revoke' | 'Remove' | 'Delete'
  /** What is revoked or removed, for screen readers. */
  readonly label: string
  /** The words after `label` in the second step: `permanently`. */
  readonly effect?: string
  /** Hidden fields of the form. */
  readonly fields?: Readonly<Record<string, string>>
}

/** A button that reveals a second button, because the change is permanent. */
export function TwoStep({ action, verb, label, effect = 'permanently', fields = {} }: TwoStepProps) {
  return (
    <details class="confirm">
      <summary aria-label={`${verb} ${label}`}>{verb}</summary>
      <form method="post" action={action}>
        {Object.entries(fields).map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} />
        ))}
        <button class="danger" type="submit" aria-label={`Confirm: ${verb.toLowerCase()} ${label} ${effect}`}>
          Confirm
        </button>
      </form>
    </details>
  )
}
