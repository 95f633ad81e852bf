package v20170312

import "errors"

var errLeftOut = errors.New("built without the backend tencent-vpc")

type (
	Client struct{}
	Filter struct {
		Name   *string
		Values []*string
	}
	Route struct {
		DestinationCidrBlock, GatewayId, GatewayType, RouteType *string
		Enabled                                                 *bool
		RouteId                                                 *uint64
	}
	RouteTable struct {
		RouteSet     []*Route
		RouteTableId *string
	}
	Request struct {
		Filters      []*Filter
		RouteTableId *string
		Routes       []*Route
	}
	Response struct {
		Response struct{ RouteTableSet []*RouteTable }
	}
)

func NewClientWithSecretId(_, _, _ string) (*Client, error)     { return nil, errLeftOut }
func NewDescribeRouteTablesRequest() *Request                   { return &Request{} }
func NewDeleteRoutesRequest() *Request                          { return &Request{} }
func NewCreateRoutesRequest() *Request                          { return &Request{} }
func (*Client) DescribeRouteTables(*Request) (*Response, error) { return nil, errLeftOut }
func (*Client) DeleteRoutes(*Request) (*Response, error)        { return nil, errLeftOut }
func (*Client) CreateRoutes(*Request) (*Response, error)        { return nil, errLeftOut }
