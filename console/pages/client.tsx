import type { Revealed } from '../../engine/admin/clients.ts'
import { Key, Timeline } from '../design/chart.tsx'
import { ClientLink, clientText, useColumns } from '../design/client-columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { StateTag } from '../design/decision.tsx'
import { FormError } from '../design/form.tsx'
import { Card, countOf, lastDays, Notice, PageHead, Secret, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { ClientView, UseRow } from '../views/client.ts'

export interface ClientProps {
  readonly view: ClientView
  readonly form: FormState
  readonly nowMs: number
  readonly mayReveal: boolean
  /** The pseudonym that was just revealed. One page shows it, once. */
  readonly revealed: Revealed | undefined
}

/** What one client uses. */
export function Client(props: ClientProps) {
  const { view, nowMs, mayReveal, revealed } = props
  const { client, name, network, windowDays, rows, days } = view
  const path = `/clients/${encodeURIComponent(client)}`
  const platforms = new Set(rows.map(({ platform }) => platform)).size
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/clients">Clients</a>
        </p>
        <PageHead
          title={client}
          about={
            <span class="facts">
              {view.isPseudonym && <Tag>pseudonym</Tag>}
              {name !== '' && <span>{name}</span>}
              {network !== '' && <span>{network}</span>}
              <span>
                {countOf(platforms, 'platform')} in the {lastDays(windowDays)}
              </span>
              <span>
                first seen <Time ms={view.firstSeenMs} nowMs={nowMs} />
              </span>
              <span>
                last seen <Time ms={view.lastSeenMs} nowMs={nowMs} />
              </span>
            </span>
          }
        >
          <CsvLink path={`${path}/platforms`} />
        </PageHead>
      </div>
      {revealed !== undefined && (
        <Notice title={`This ${revealed.kind} is`}>
          <Secret id="revealed" value={revealed.text} />
          <p class="small">The audit log has who revealed it, and when.</p>
        </Notice>
      )}
      {view.isPseudonym && mayReveal && revealed === undefined && <Reveal {...props} path={path} />}
      <Card title="Platforms" bare>
        <Table id="platforms" label="Platforms" columns={useOfClientColumns(nowMs)} rows={rows} />
      </Card>
      <Card title="Platforms per day" note={<CsvLink path={`${path}/days`} />}>
        <figure>
          <Timeline days={days} label="Platforms that the client used per day" unit="platform" />
          <figcaption>
            <Key tone="shadow">not approved</Key>
            <Key tone="approved">approved</Key>
          </figcaption>
        </figure>
      </Card>
    </>
  )
}

function Reveal({ form, path }: ClientProps & { readonly path: string }) {
  return (
    <Card title="Reveal the pseudonym" note="for owners, once in each answer">
      <form class="stack" method="post" action={`${path}/reveal`}>
        <FormError form={form} />
        <p class="muted">This shows the address or the name of a person. The audit log records it.</p>
        <div>
          <button type="submit">Reveal</button>
        </div>
      </form>
    </Card>
  )
}

export function useOfClientColumns(nowMs: number): readonly Column<UseRow>[] {
  return [
    {
      id: 'platform',
      name: 'Platform',
      cell: ({ platform, isRegistered }) =>
        isRegistered ? <a href={`/platforms/${encodeURIComponent(platform)}`}>{platform}</a> : platform,
      csv: ({ platform }) => platform,
    },
    { id: 'decision', name: 'Decision', cell: StateTag, csv: ({ state }) => state, wide: true },
    {
      id: 'client',
      name: 'Client',
      cell: ({ client, user }) => (
        <div class="links">
          <p>{ClientLink({ client })}</p>
          {user !== '' && <p class="small break">{ClientLink({ client: user })}</p>}
        </div>
      ),
      csv: clientText,
      wide: true,
    },
    { id: 'user', name: 'User', csv: ({ user }) => user },
    ...useColumns<UseRow>(nowMs),
  ]
}
