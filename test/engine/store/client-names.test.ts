import t from 'tap'
import { makeOrganization, openStore } from '../../support/store.ts'

t.test('an address has the name of its smallest named network', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const other = makeOrganization(opened, 'Other')
  const { clientNames, environment } = opened.store
  t.equal(clientNames.networkNames(id)('10.2.0.7'), undefined)
  environment.write(() => {
    clientNames.putNetwork(id, { network: '10.0.0.0/8', name: 'Company' })
    clientNames.putNetwork(id, { network: '10.2.0.0/16', name: 'Berlin' })
    clientNames.putNetwork(id, { network: '2001:db8::/32', name: 'Lab' })
    clientNames.putNetwork(other.id, { network: '10.2.0.0/24', name: 'Secret' })
  })
  const nameOf = clientNames.networkNames(id)
  const found = ['10.2.0.7', '10.9.0.1', '192.0.2.1', '2001:db8::7', 'p-abc', ''].map(nameOf)
  t.same(found, ['Berlin', 'Company', undefined, 'Lab', undefined, undefined])
})
