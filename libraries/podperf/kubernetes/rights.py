"""Checks whether the login has the rights that a run needs in a cluster (SelfSubjectAccessReview)."""

from __future__ import annotations

from dataclasses import dataclass

from podperf.kubernetes.api import Api

_FOLDER = "topologies/kubernetes"
NAMESPACED_FILE, READER_FILE = f"{_FOLDER}/namespaced.yaml", f"{_FOLDER}/reader.yaml"
POLICIES_FILE, ATTACHMENTS_FILE = f"{_FOLDER}/network_policies.yaml", f"{_FOLDER}/network_attachments.yaml"


@dataclass(frozen=True)
class Right:
    """One verb on one resource of an API group ("" is the core API). With `cluster`, it is not bound to a namespace."""

    verb: str
    resource: str
    subresource: str = ""
    cluster: bool = False
    group: str = ""

    @property
    def name(self) -> str:
        """The right in words: `create pods/exec`."""
        return f"{self.verb} {self.resource}" + (f"/{self.subresource}" if self.subresource else "")


# Each run needs these rights in its namespace. The client opens exec by GET; newer servers also ask for `create`.
OF_A_RUN = (
    *(Right(verb, "pods") for verb in ("create", "get", "list", "delete")),
    *(Right(verb, "pods", "exec") for verb in ("create", "get")),
    *(Right(verb, "configmaps") for verb in ("create", "list", "patch", "delete")),
    Right("list", "events"),
)
# A run whose frames go to a Service needs these, too.
OF_SERVICES = tuple(Right(verb, "services") for verb in ("create", "delete"))
# A run with NetworkPolicies needs these, too.
OF_POLICIES = tuple(
    Right(verb, "networkpolicies", group="networking.k8s.io") for verb in ("create", "deletecollection")
)
# A run whose pods Multus gives their interfaces needs these, too.
OF_ATTACHMENTS = tuple(
    Right(verb, "network-attachment-definitions", group="k8s.cni.cncf.io") for verb in ("create", "deletecollection")
)
# The files that grant the rights in one namespace.
GRANTED_BY = {
    NAMESPACED_FILE: (*OF_A_RUN, *OF_SERVICES),
    POLICIES_FILE: OF_POLICIES,
    ATTACHMENTS_FILE: OF_ATTACHMENTS,
}
# A run that makes its own namespace needs these, too.
OF_NAMESPACES = tuple(Right(verb, "namespaces", cluster=True) for verb in ("create", "get", "list", "delete"))
# The policies of a kubelet. No file of podperf's grants this right: it also lets its owner run commands in all pods.
OF_A_KUBELET = Right("get", "nodes", "proxy", cluster=True)
# Without these, `check` does not read the nodes.
OF_A_READER = tuple(Right(verb, "nodes", cluster=True) for verb in ("get", "list"))


def allowed(api: Api, right: Right, namespace: str | None) -> bool:
    """Whether the login has a right, in a namespace or, with None, in all."""
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
    }
    if not right.cluster and namespace is not None:
        attributes["namespace"] = namespace
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    return bool(answer["status"]["allowed"])
