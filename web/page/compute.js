// The compiled planner: requests and answers are JSON (web/planner.cpp).
import createModule from "planner-module";
import packed from "planner-program";

async function unpacked() {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** @returns {Promise<{plan, map, overC, presets}>} functions from a request to an answer; they throw what is wrong */
export async function loadPlanner() {
  const module = await createModule({ wasmBinary: await unpacked() });
  const caller = (name) => (request = {}) => {
    const answer = JSON.parse(module.ccall(name, "string", ["string"], [JSON.stringify(request)]));
    if (answer.error) throw new Error(answer.error);
    return answer;
  };
  return {
    plan: caller("specdec_plan"),
    map: caller("specdec_map"),
    overC: caller("specdec_over_c"),
    presets: caller("specdec_presets"),
  };
}
