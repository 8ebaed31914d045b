import { PASSKEYS_PER_USER_MAX } from '../../engine/limits.ts'
import type { Passkey } from '../../engine/store/users.ts'
import { ActionButton, Field, FormError, PasskeyForm, Submit, TwoStep } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, NarrowCard, PageHead, Tag } from '../design/parts.tsx'
import { type Column, Table, timeColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { Visit } from '../http/visit.ts'

interface PasskeyRow extends Passkey {
  /** The host name for which the passkey was made, if this console has another; otherwise ''. */
  readonly otherHost: string
}

/**
 * The passkeys of the signed-in user. undefined if there is nothing to show: passkeys do not work
 * at the console's origin, or are not for this user.
 */
export function passkeysView({ site, identity }: Visit) {
  const { user, session } = identity
  const host = site.passkeys?.relyingParty.id
  const passkeys = site.store.passkeys
    .ofUser(user.id)
    .map((passkey): PasskeyRow => ({ ...passkey, otherHost: passkey.rpId === host ? '' : passkey.rpId }))
  const canAdd = host !== undefined && user.passwordHash !== ''
  if (session.providerOrganizationId !== undefined || (!canAdd && passkeys.length === 0)) return undefined
  const isFull = passkeys.length >= PASSKEYS_PER_USER_MAX
  return { passkeys, mayAdd: canAdd && !isFull, isFull }
}

interface PasskeysProps {
  readonly visit: Visit
  readonly view: NonNullable<ReturnType<typeof passkeysView>>
}

/** Name length in a form. The store takes 255 bytes. */
const NAME_LENGTH_MAX = 60

/** The passkeys of the user, on the account page. */
export function Passkeys({ visit, view: { passkeys, mayAdd, isFull } }: PasskeysProps) {
  return (
    <Card
      title="Passkeys"
      note={
        passkeys.length > 0 ? (
          <CsvLink path="/passkeys" />
        ) : (
          'Sign in with a fingerprint, a face, a PIN or a security key'
        )
      }
      bare
    >
      {passkeys.length > 0 && (
        <Table visit={visit} id="passkeys" label="Passkeys" columns={PASSKEY_COLUMNS} rows={passkeys} />
      )}
      {(mayAdd || isFull) && (
        <div class="body column">
          {passkeys.length === 0 && <p class="muted">No passkey yet. Nobody can guess a passkey, or phish it.</p>}
          {mayAdd && <ActionButton action="/account/passkeys/new">Add a passkey</ActionButton>}
          {isFull && <p class="muted">{passkeys.length} passkeys are the most that a user can have.</p>}
        </div>
      )}
    </Card>
  )
}

export const PASSKEY_COLUMNS: readonly Column<PasskeyRow>[] = [
  {
    id: 'name',
    name: 'Passkey',
    cell: (row) => (
      <>
        {row.name} <State {...row} />
      </>
    ),
    csv: ({ name }) => name,
  },
  { ...timeColumn('created', 'Created', ({ createdAtMs }: PasskeyRow) => createdAtMs), wide: true },
  { ...timeColumn('used', 'Last used', ({ usedAtMs }: PasskeyRow) => usedAtMs), wide: true },
  {
    id: 'actions',
    name: 'Rename or remove',
    quiet: true,
    cell: ({ id, name }) => (
      <div class="row">
        <details class="edit">
          <summary aria-label={`Rename ${name}`}>Rename</summary>
          <form class="row" method="post" action={`/account/passkeys/${id}/name`}>
            <label class="visually-hidden" for={`name-${id}`}>
              New name of {name}
            </label>
            <input id={`name-${id}`} name="name" value={name} required maxLength={NAME_LENGTH_MAX} autoComplete="off" />
            <button type="submit">Save</button>
          </form>
        </details>
        <TwoStep action={`/account/passkeys/${id}/remove`} verb="Remove" label={name} />
      </div>
    ),
  },
]

function State({ blockedAtMs, otherHost, isSyncable, isSynced }: PasskeyRow) {
  if (blockedAtMs !== 0) return <Tag tone="bad">blocked: a copy may exist</Tag>
  if (otherHost !== '') return <Tag tone="warn">only for {otherHost}</Tag>
  if (isSynced) return <Tag>synced</Tag>
  return <Tag>{isSyncable ? 'not synced yet' : 'on one device'}</Tag>
}

interface AddPasskeyProps {
  readonly form: FormState
  /** For navigator.credentials.create. */
  readonly options: object
  readonly host: string
  readonly suggestedName: string
}

/** Makes a passkey, by the browser script. */
export function AddPasskey({ form, options, host, suggestedName }: AddPasskeyProps) {
  return (
    <>
      <PageHead
        title="Add a passkey"
        about={`The browser asks where to keep the passkey: on this device, on a phone or on a security key. It works at ${host} only.`}
      />
      <NarrowCard>
        <PasskeyForm action="/account/passkeys" ceremony="create" field="passkey" options={options}>
          <FormError form={form} />
          <Field
            name="name"
            label="Name"
            form={form}
            value={suggestedName}
            required
            maxLength={NAME_LENGTH_MAX}
            hint="The device or key, so that you know which one to remove when it is lost."
          />
          <noscript>
            <p class="error">Passkeys need JavaScript.</p>
          </noscript>
          <Submit cancel="/account">Create the passkey</Submit>
        </PasskeyForm>
      </NarrowCard>
    </>
  )
}
