import { Fault } from '../../engine/process/error-codes.ts'
import { redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Platform } from '../pages/platform.tsx'
import { platformView } from '../views/platform.ts'

/**
 * Returns the platform's id, because a name may be the id of another platform.
 *
 * @throws Fault NOT_FOUND.
 */
function registeredId({ site, organization }: Visit, name: string): string {
  const platform = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (platform === undefined) throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
  return platform.id
}

export const PLATFORM_ROUTES: readonly Route[] = [
  page('/platforms/:name', 'discovery.read', (visit, { name }) => {
    const view = platformView(visit, name)
    if (view === undefined) {
      throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the last scan or in the registry`)
    }
    const content = Platform({
      view,
      nowMs: visit.nowMs,
      mayApprove: visit.may('approval.add'),
      mayWithdraw: visit.may('approval.remove'),
      done: visit.request.query.get('done') ?? '',
    })
    return visit.page(name, '/platforms', content)
  }),
  form('/platforms/:name/approve', 'approval.add', async (visit, { name }) => {
    await visit.change('approval.add', { platforms: [registeredId(visit, name)] })
    return redirect(`/platforms/${encodeURIComponent(name)}?done=approved`)
  }),
  form('/platforms/:name/withdraw', 'approval.remove', async (visit, { name }) => {
    await visit.change('approval.remove', { platforms: [registeredId(visit, name)] })
    return redirect(`/platforms/${encodeURIComponent(name)}?done=withdrawn`)
  }),
]
