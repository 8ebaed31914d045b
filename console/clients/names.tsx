import { z } from 'zod'
import { readHostNames } from '../../engine/admin/host-names-file.ts'
import { CLIENT_NETWORKS_MAX } from '../../engine/limits.ts'
import type { NamedNetwork } from '../../engine/store/client-names.ts'
import { clientModeOf } from '../../engine/store/organizations.ts'
import { Field, FileContent, Form, TwoStep } from '../design/form.tsx'
import { CsvLink, PagedTable, paged } from '../design/list.tsx'
import { Card, countOf, countText, Empty, PageHead } from '../design/parts.tsx'
import { type Column, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, fileText, formBytesMax, RejectedForm } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/client-names'
const NETWORKS_PATH = `${PATH}/networks` as const
/** Reading names of this size takes 50 ms. posture-admin client names import reads larger files. */
const NAMES_BYTES_MAX = 512 * 1024

const DONE: Readonly<Record<string, string>> = {
  named: 'The network has a name. Clients in it are shown with it',
  removed: 'The name of the network is removed',
  imported: 'The names are imported. Earlier use keeps the names of its time',
}

const COLUMNS: readonly Column<NamedNetwork>[] = [
  {
    ...textColumn('network', 'Network', ({ network }: NamedNetwork) => network),
    cell: ({ network }) => <span class="mono">{network}</span>,
  },
  {
    ...textColumn('name', 'Name', ({ name }: NamedNetwork) => name),
    cell: ({ name }) => <span class="break">{name}</span>,
  },
  {
    id: 'remove',
    name: 'Remove',
    action: 'client.name',
    quiet: true,
    cell: ({ network }) => (
      <TwoStep
        action={`${NETWORKS_PATH}/remove`}
        verb="Remove"
        label={network}
        effect="from the named networks"
        fields={[['network', network]]}
      />
    ),
  },
]

interface ClientNamesProps {
  readonly visit: Visit
  readonly networkForm: FormState
  readonly namesForm: FormState
}

/** Names addresses and networks. */
function ClientNames({ visit, networkForm, namesForm }: ClientNamesProps) {
  const { site, organization, request } = visit
  const { clientNames } = site.store
  const networks = paged(clientNames.networks(organization.id), request.query)
  const namesTotal = clientNames.hostsCount(organization.id)
  const mayName = visit.may('client.name')
  return (
    <>
      <PageHead
        title="Names of clients"
        about="Clients are shown and found with the names of their addresses and networks"
      />
      <div class="wide">
        <div class="column">
          <PagedTable
            {...{ visit, id: 'networks', label: 'Networks', title: 'Networks', columns: COLUMNS, rows: networks }}
            note={
              <span class="row">
                {countText(networks.total)} of {countText(CLIENT_NETWORKS_MAX)} <CsvLink path={NETWORKS_PATH} />
              </span>
            }
            empty={
              <Empty title="No network has a name">
                <p class="muted">Name your offices and VPNs, so that each client is shown with its place.</p>
              </Empty>
            }
          />
          {mayName && (
            <Card title="Name a network">
              <Form action={NETWORKS_PATH} form={networkForm} submit="Save Network">
                <Field
                  name="network"
                  label="Network"
                  form={networkForm}
                  required
                  maxLength={60}
                  hint="Such as 10.2.0.0/16."
                />
                <Field
                  name="name"
                  label="Name"
                  form={networkForm}
                  required
                  maxLength={255}
                  hint="Such as Berlin office."
                />
              </Form>
            </Card>
          )}
        </div>
        {mayName && clientModeOf(organization) === 'full' && (
          <Card
            title="Host names"
            note={namesTotal === 0 ? 'none yet' : `${countOf(namesTotal, 'address has', 'addresses have')} one`}
          >
            <Form action={`${PATH}/hosts`} form={namesForm} submit="Import Names" look="plain">
              <p class="small muted">
                Lines with an address, a name, and optionally from and to, or the leases of ISC dhcpd, Kea or dnsmasq.
                Import all names together: other addresses have no name from now on. Earlier use keeps the names of its
                time.
              </p>
              <FileContent
                form={namesForm}
                accept=".csv,.leases,.txt"
                hint={`At most ${NAMES_BYTES_MAX / 1024} KiB. posture-admin client names import reads larger files.`}
              />
            </Form>
          </Card>
        )}
      </div>
    </>
  )
}

const newNetwork = z.object({
  network: z.string().trim().min(1, 'Enter a network'),
  name: z.string().trim().min(1, 'Enter a name'),
})

export const CLIENT_NAME_ROUTES: readonly Route[] = [
  page(PATH, 'client.read', (visit) => namesPage(visit, {})),
  csvFile(NETWORKS_PATH, 'client.read', COLUMNS, ({ site, organization }) =>
    site.store.clientNames.networks(organization.id),
  ),
  changeForm(NETWORKS_PATH, 'client.name', (_, visit) => visit.read(newNetwork), `${PATH}?done=named`, {
    again: (visit, networkForm) => namesPage(visit, { networkForm }),
  }),
  changeForm(
    `${NETWORKS_PATH}/remove`,
    'client.name',
    (_, { request }) => ({ network: request.fields.text('network'), name: undefined }),
    `${PATH}?done=removed`,
  ),
  changeForm(
    `${PATH}/hosts`,
    'client.name',
    (_, { request }) => {
      const hosts = readHostNames(fileText(request.fields, NAMES_BYTES_MAX), 'names').names
      if (hosts.size === 0) throw new RejectedForm({ text: 'No line has an address and a name' })
      return { hosts }
    },
    `${PATH}?done=imported`,
    { bodyBytesMax: formBytesMax(NAMES_BYTES_MAX), again: (visit, namesForm) => namesPage(visit, { namesForm }) },
  ),
]

function namesPage(visit: Visit, forms: Partial<Record<'networkForm' | 'namesForm', FormState>>): Answer {
  const all = { networkForm: EMPTY_FORM, namesForm: EMPTY_FORM, ...forms }
  const form = forms.networkForm ?? forms.namesForm ?? EMPTY_FORM
  return visit.page('Names of clients', PATH, ClientNames({ visit, ...all }), { form, done: DONE })
}
