import { isoSeconds } from '../../engine/process/clock.ts'
import { Field, FormError, Select } from '../design/form.tsx'
import { PageHead, Time } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import type { ApiKeyRow } from '../views/api-keys.ts'

/** For how many hours the old key stays valid, so that programs can switch meanwhile. */
export const GRACE_HOURS: Readonly<Record<string, string>> = {
  0: 'Now',
  24: 'In 24 hours',
  168: 'In 7 days',
  720: 'In 30 days',
}

const DATE_CHARACTERS = 10

export interface RotateKeyProps {
  readonly apiKey: ApiKeyRow
  readonly form: FormState
  readonly nowMs: number
}

/** Replaces an API key by a new one. */
export function RotateKey({ apiKey: { id, label, visible, expiresAtMs, lastUsedMs }, form, nowMs }: RotateKeyProps) {
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/api-keys">API Keys</a> / {label}
        </p>
        <PageHead
          title={`Rotate ${label}`}
          about={
            <>
              <span class="mono">svc_pk_{visible}…</span>, last used <Time ms={lastUsedMs} nowMs={nowMs} />
            </>
          }
        />
      </div>
      <section class="card narrow">
        <form class="stack body" method="post" action={`/api-keys/${id}/rotate`}>
          <FormError form={form} />
          <p class="muted">The new key has the same label and scopes. It is shown once, on the next page.</p>
          <Select name="grace" label="The old key ends" form={form} options={Object.entries(GRACE_HOURS)} value="24" />
          {expiresAtMs > 0 && (
            <Field
              name="expires"
              label="The new key expires after"
              type="date"
              form={form}
              required
              hint={`The old key expires on ${isoSeconds(expiresAtMs).slice(0, DATE_CHARACTERS)} (UTC).`}
            />
          )}
          <div class="row">
            <button class="first" type="submit">
              Rotate
            </button>
            <a class="button" href="/api-keys">
              Cancel
            </a>
          </div>
        </form>
      </section>
    </>
  )
}
